import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { type RunningProduct, removeDataDir, startProduct, temporaryDataDir } from '../../../support/product.ts'
import { expectJson } from '../../../support/rest.ts'
import type { BenchTarget } from './rpc-bench.ts'

/** A product with one account at a third party, and a bare proxy to the same one. */
export interface ProxyBench {
  readonly product: RunningProduct
  readonly accountId: string
  readonly bareProxy: BenchTarget
}

/**
 * Starts everything, runs `work` and takes it down.
 *
 * @param blobBytes size of what the third party streams
 * @param command starts another product than this tree's, as `startProduct` takes it
 */
export async function withProxyBench(
  blobBytes: number,
  work: (bench: ProxyBench) => Promise<void>,
  command: readonly string[] = [process.execPath, join(import.meta.dirname, '../../../../src/main.ts'), 'start'],
): Promise<void> {
  const dataDir = temporaryDataDir()
  const upstream = await startScript('upstream-server.ts', String(blobBytes))
  const bare = await startScript('bare-proxy.ts', `http://127.0.0.1:${upstream.port}`)
  const product = await startProduct({
    dataDir,
    command,
    environment: { PATCHBAY_RATE_LIMIT: '0', PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' },
  })
  try {
    const accountId = await connect(product, `http://127.0.0.1:${upstream.port}`)
    await work({ product, accountId, bareProxy: bare })
  } finally {
    await product.stop()
    upstream.child.kill()
    bare.child.kill()
    removeDataDir(dataDir)
  }
}

async function startScript(name: string, argument: string): Promise<BenchTarget> {
  const args = [join(import.meta.dirname, name), argument]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [port] = await once(child.stdout, 'data')
  return { child, port: Number(String(port)), url: `http://127.0.0.1:${Number(String(port))}` }
}

/** A definition with everything a call usually passes: credential, override, error and rate limit expressions. */
async function connect({ url, bootstrap }: RunningProduct, upstreamUrl: string): Promise<string> {
  const { team_token, environment_token } = bootstrap
  const integration = await expectJson('POST', `${url}/integration`, team_token, {
    name: 'records',
    config: {
      base_url: 'https://replaced.example.com',
      credentials: { api_key: { config: {} } },
      authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
      error_expression: 'status >= 400 ? {"status": status, "message": body.message}',
      rate_limit: { rate_limit_header_expression: '{"limit": headers."x-limit", "remaining": headers."x-left"}' },
      resources: {
        records: { get: { path: '/records/{{id}}', description: 'Gets a record.' } },
        contacts: { list: { path: '/contacts', response_path: 'results' } },
      },
    },
  })
  const installation = await expectJson('POST', `${url}/environment-integration`, environment_token, {
    integration_id: integration.id,
    override: { base_url: upstreamUrl, headers: { 'x-from': 'override' } },
  })
  const account = await expectJson('POST', `${url}/integrated-account`, environment_token, {
    environment_integration_id: installation.id,
    tenant_id: 'acme',
    credentials: { api_key: 'k' },
  })
  return account.id
}
