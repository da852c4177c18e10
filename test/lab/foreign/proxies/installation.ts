import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CertificateAuthority, createCertificateAuthority } from '../../../support/certificate-authority.ts'
import {
  freePort,
  type RunningProduct,
  removeDataDir,
  startProduct,
  temporaryDataDir,
} from '../../../support/product.ts'
import { expectJson, type JsonAnswer } from '../../../support/rest.ts'
import { startUpstream, type Upstream } from './upstream.ts'

/** Requests that one client address may make to the product with TLS, in its window. */
export const ADDRESS_LIMIT = 5

/** Two products that proxies stand in front of, and what they need. */
export interface Installation extends AsyncDisposable {
  readonly authority: CertificateAuthority
  /** Its certificate, and the certificate of `localhost` for proxies. */
  readonly files: { readonly authority: string; readonly cert: string; readonly key: string; readonly pem: string }
  /** Port of the public address of `plain`. */
  readonly frontPort: number
  /** The public address of `plain`, with TLS and the path `/pb`. */
  readonly publicUrl: string
  /** In plaintext. */
  readonly plain: RunningProduct
  /** With TLS by files of its own, the address limit, and a forward proxy. */
  readonly secure: RunningProduct
  readonly secureFiles: { readonly cert: string; readonly key: string }
  /** Port of the forward proxy. */
  readonly forwardPort: number
  readonly upstream: Upstream
}

/** Starts both, side by side. */
export async function startInstallation(): Promise<Installation> {
  const authority = createCertificateAuthority()
  const directory = mkdtempSync(join(tmpdir(), 'patchbay-proxies-'))
  const write = (name: string, text: string) => {
    const file = join(directory, name)
    writeFileSync(file, text)
    return file
  }
  const keys = authority.keysOf('localhost')
  const files = {
    authority: write('authority.pem', authority.certificate),
    cert: write('front.crt', keys.cert),
    key: write('front.key', keys.key),
    pem: write('front.pem', keys.cert + keys.key),
  }
  const secureFiles = { cert: write('own.crt', keys.cert), key: write('own.key', keys.key) }
  const [frontPort, forwardPort] = [await freePort(), await freePort()]
  const upstream = await startUpstream(keys)
  const publicUrl = `https://localhost:${frontPort}/pb`
  const common = {
    PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8,::1/128',
    PATCHBAY_TRUSTED_PROXIES: '127.0.0.1',
    NODE_EXTRA_CA_CERTS: files.authority,
  }
  const dataDirs = [temporaryDataDir(), temporaryDataDir()] as const
  const [plain, secure] = await Promise.all([
    startProduct({
      dataDir: dataDirs[0],
      environment: { ...common, PATCHBAY_PUBLIC_URL: publicUrl, PATCHBAY_RATE_LIMIT_ADDRESS: '0' },
    }),
    startProduct({
      dataDir: dataDirs[1],
      authority: authority.certificate,
      environment: {
        ...common,
        PATCHBAY_RATE_LIMIT_ADDRESS: String(ADDRESS_LIMIT),
        PATCHBAY_TLS_CERT: secureFiles.cert,
        PATCHBAY_TLS_KEY: secureFiles.key,
        HTTPS_PROXY: `http://127.0.0.1:${forwardPort}`,
        NO_PROXY: upstream.direct,
      },
    }),
  ])
  return {
    authority,
    files,
    frontPort,
    publicUrl,
    plain,
    secure,
    secureFiles,
    forwardPort,
    upstream,
    async [Symbol.asyncDispose]() {
      await Promise.all([plain.stop(), secure.stop()])
      await upstream[Symbol.asyncDispose]()
      for (const each of dataDirs) removeDataDir(each)
      rmSync(directory, { recursive: true })
    },
  }
}

/** A definition of the third party at an address. */
function definition(url: string): object {
  return {
    label: 'Behind proxies',
    base_url: url,
    credentials: {
      api_key: {
        config: {
          fields: [
            { name: 'api_key', label: 'API key', type: 'password', required: true },
            { name: 'host', label: 'Host' },
          ],
        },
      },
    },
    authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
    pagination: { format: 'page', config: { page_key: 'page', limit_key: 'limit', limit: 100 } },
    resources: {
      contacts: { list: { path: '/contacts', response_path: 'data', description: 'Lists contacts.' } },
      files: { create: { method: 'POST', path: '/files' } },
    },
  }
}

/** A call of a product that must succeed. */
export type Call = (method: string, path: string, token: string, body?: object) => Promise<JsonAnswer>

/** A call past the proxies. */
export function directly({ url }: RunningProduct): Call {
  return (method, path, token, body) => expectJson(method, `${url}${path}`, token, body)
}

/** Adds an account of the third party at an address, which may have the placeholder `{{host}}`. @returns its id */
export async function addAccount(
  call: Call,
  { bootstrap }: RunningProduct,
  { name, url, host = 'localhost' }: { readonly name: string; readonly url: string; readonly host?: string },
): Promise<string> {
  const { team_token, environment_token: token } = bootstrap
  const { id } = await call('POST', '/integration', team_token, { name, config: definition(url) })
  const installation = await call('POST', '/environment-integration', token, { integration_id: id })
  const account = await call('POST', '/integrated-account', token, {
    environment_integration_id: installation.id,
    tenant_id: 'acme',
    credentials: { api_key: 'key', host },
  })
  return account.id
}
