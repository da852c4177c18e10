import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { Provider, type ProviderScript } from '../../../product/rig/provider.ts'
import { rigTable } from '../../../product/rig/rig-table.ts'
import { type ProviderAnswer, type ProviderRequest, startStandIn } from '../../../product/rig/stand-in.ts'
import { createCertificateAuthority } from '../../../support/certificate-authority.ts'
import { removeDataDir, startProduct, temporaryDataDir } from '../../../support/product.ts'
import { htmlReply, type ReceivedRequest } from '../peers/listen.ts'
import type { Canary } from './observer.ts'
import { createWorld, type World } from './world.ts'

/** The product and a browser, for which one stand-in is every host of the internet. */
export interface ThirdParties {
  readonly world: World
  /** Plays another third party from now on. */
  play(answer: (request: ProviderRequest) => ProviderAnswer): void
}

/** A shipped definition's third party. */
export interface ShippedParty {
  readonly provider: Provider
  /** Variables of the override. */
  readonly variables: Readonly<Record<string, string>>
  /** What must not appear anywhere. */
  readonly secrets: readonly Canary[]
  answer(request: ProviderRequest): ProviderAnswer
}

/** Starts them for one test file: server and worker in one process of their own, with the certificate authority of the test. */
export async function startThirdParties(): Promise<ThirdParties> {
  const authority = createCertificateAuthority()
  const standIn = await startStandIn(authority)
  const dataDir = temporaryDataDir()
  const logFile = join(dataDir, 'product.log')
  const authorityFile = join(dataDir, 'authority.pem')
  writeFileSync(authorityFile, authority.certificate)
  const product = await startProduct({
    dataDir,
    environment: {
      PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
      PATCHBAY_EGRESS_CONNECT_TO: `*=127.0.0.1:${standIn.port}`,
      PATCHBAY_LOG_LEVEL: 'debug',
      PATCHBAY_RATE_LIMIT_ADDRESS: '0',
      NODE_EXTRA_CA_CERTS: authorityFile,
    },
  })
  writeFileSync(logFile, product.output())
  for (const stream of [product.child.stdout, product.child.stderr])
    stream?.on('data', (chunk) => appendFileSync(logFile, chunk))
  afterAll(async () => {
    await product.stop()
    await standIn[Symbol.asyncDispose]()
    removeDataDir(dataDir)
  })
  const { team_token: teamToken, environment_token: environmentToken } = product.bootstrap
  const received: ReceivedRequest[] = []
  const world = await createWorld({
    product: { url: product.url, teamToken, environmentToken, logFile },
    browserArgs: [
      `--host-resolver-rules=MAP * 127.0.0.1:${standIn.port}, EXCLUDE 127.0.0.1, EXCLUDE localhost`,
      `--ignore-certificate-errors-spki-list=${authority.serverKeyHash}`,
    ],
    received,
  })
  return {
    world,
    play: (answer) =>
      standIn.play((request) => {
        const { method, url, headers } = request
        received.push({ method, url: url.href, referer: headers.referer })
        return answer(request)
      }),
  }
}

/**
 * The third party of a journey of the rig, with a page that asks for consent.
 * @param key as `rigTable` takes it
 * @param hosts what its golden files call a host, and what it is called here
 */
export function shippedParty(
  key: string,
  answers: ProviderScript['answers'] = {},
  hosts: readonly [from: string, to: string] = ['', ''],
): ShippedParty {
  const { script } = rigTable(key)
  const oauth: typeof script.oauth = script.oauth && JSON.parse(JSON.stringify(script.oauth).replaceAll(...hosts))
  const code = `code-${crypto.randomUUID()}`
  const secret = `secret-${crypto.randomUUID()}`
  const variables = { ...script.variables, CLIENT_SECRET: secret }
  const provider = new Provider({ ...script, oauth, variables, answers: { ...script.answers, ...answers } })
  const consent = oauth?.authorize ? new URL(oauth.authorize) : undefined
  return {
    provider,
    variables,
    secrets: [
      { kind: 'code', value: code },
      { kind: 'client secret', value: secret },
      ...tokensOf(oauth?.answer).map((value) => ({ kind: 'token', value: `${value}.t1.` })),
    ],
    answer(request) {
      const { method, url } = request
      if (url.pathname === '/favicon.ico') return { status: 404, body: '' }
      if (consent === undefined || url.host !== consent.host || url.pathname !== consent.pathname)
        return provider.answer(request)
      if (method === 'GET') return { body: '', ...htmlReply(200, CONSENT) }
      const state = url.searchParams.get('state') ?? ''
      const location = `${url.searchParams.get('redirect_uri')}?${new URLSearchParams({ code, state })}`
      return { status: 302, headers: { location }, body: '' }
    },
  }
}

const CONSENT = '<h1>Allow access?</h1><form method="post"><button>Allow</button></form>'

function tokensOf(answer: JsonObject | string | undefined): readonly string[] {
  if (answer === undefined || typeof answer === 'string') return []
  return [answer.access_token, answer.refresh_token].filter((token) => typeof token === 'string')
}
