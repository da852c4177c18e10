import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  type BodyEndpoint,
  unauthenticatedEndpoints,
  type WorstBody,
  worstBodies,
} from '../../../laws/untrusted/body-endpoints.ts'
import { MIB } from '../../../laws/untrusted/reader.ts'
import type { RunningProduct } from '../../../support/product.ts'
import { expectJson } from '../../../support/rest.ts'

const AT_ONCE = 100
/** How long a flood may take until what was not answered is aborted. */
const FLOOD_MS = 5_000
const SLOW_PIECE_MS = 250
const SLOW_PIECE_BYTES = 1_024
const SAMPLE_MS = 50

/** What a flood did to the server. */
export interface FloodResult {
  readonly what: string
  /** Resident memory above that before the first flood, MiB. */
  readonly growthMib: number
  /** How many times as long as alone the slowest call of another tenant took. */
  readonly slowdown: number
  /** Statuses that are not documented for such a request. */
  readonly undocumented: readonly number[]
}

/** Statuses of requests that are accepted, wrong, too large, too many, not finished in time, or of another version of HTTP. */
const DOCUMENTED: readonly number[] = [200, 303, 400, 401, 403, 404, 405, 408, 410, 413, 415, 429, 503, 504, 505]

/** Sends each endpoint that reads bodies before authentication a hundred of each worst body at once. */
export async function* bodyFloods(
  product: RunningProduct,
  upstreamUrl: string,
  endpoints: readonly BodyEndpoint[] = unauthenticatedEndpoints(),
): AsyncGenerator<FloodResult> {
  const { url, child } = product
  const other = await secondTenant(product)
  const aloneMs = Math.max(...(await repeat(20, () => timed(other))))
  const residentBefore = residentMib(child.pid ?? 0)
  const ids = await webhookIds(product, upstreamUrl)
  for (const endpoint of endpoints)
    for (const path of pathsOf(endpoint, ids))
      for (const [name, body] of Object.entries(worstBodies())) {
        const flood = sendAll(url + path, body)
        let peak = 0
        let slowestMs = 0
        for (let isOver = false; !isOver; ) {
          isOver = await Promise.race([flood.then(() => true), pause(SAMPLE_MS)])
          slowestMs = Math.max(slowestMs, await timed(other))
          peak = Math.max(peak, residentMib(child.pid ?? 0))
        }
        const undocumented = (await flood).filter((status) => status !== 0 && !DOCUMENTED.includes(status))
        const what = `${endpoint.path}, ${name}`
        yield { what, growthMib: peak - residentBefore, slowdown: slowestMs / aloneMs, undocumented }
      }
}

/** Resident memory of a process, MiB. */
export function residentMib(pid: number): number {
  const [, kib = '0'] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return (Number(kib) * 1024) / MIB
}

function pathsOf({ path, isPrefix }: BodyEndpoint, ids: readonly string[]): readonly string[] {
  if (!isPrefix) return [path]
  return path.startsWith('/integrated-account-webhook/') ? ids.map((id) => path + id) : [`${path}${ids[0]}`]
}

async function sendAll(url: string, body: WorstBody): Promise<readonly number[]> {
  const ended = AbortSignal.timeout(FLOOD_MS)
  return await Promise.all(Array.from({ length: AT_ONCE }, () => send(url, body, ended)))
}

/** @returns the status; 0 when the connection was closed, or no answer came in time */
function send(url: string, { type, bytes, coding, declared, isSlow }: WorstBody, signal: AbortSignal): Promise<number> {
  const headers = {
    'content-type': type,
    'content-length': declared ?? bytes.byteLength,
    ...(coding === undefined ? {} : { 'content-encoding': coding }),
  }
  return new Promise((resolve) => {
    const sent = request(url, { method: 'POST', headers, signal })
    sent.once('response', (response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode ?? 0))
    })
    sent.once('error', () => resolve(0))
    sent.once('close', () => resolve(0))
    if (isSlow === true) {
      let at = 0
      const timer = setInterval(() => {
        sent.write(bytes.subarray(at, at + SLOW_PIECE_BYTES))
        at += SLOW_PIECE_BYTES
      }, SLOW_PIECE_MS)
      sent.once('close', () => clearInterval(timer))
    } else sent.end(bytes)
  })
}

async function pause(ms: number): Promise<false> {
  await new Promise((resolve) => setTimeout(resolve, ms))
  return false
}

async function timed(call: () => Promise<void>): Promise<number> {
  const start = performance.now()
  await call()
  return performance.now() - start
}

async function repeat<T>(times: number, work: () => Promise<T>): Promise<readonly T[]> {
  const results: T[] = []
  for (let time = 0; time < times; time++) results.push(await work())
  return results
}

/** A call of another team. @throws Error unless it is answered */
async function secondTenant({ url, bootstrap }: RunningProduct): Promise<() => Promise<void>> {
  const post = (path: string, token: string, body: JsonObject) => expectJson('POST', url + path, token, body)
  const team = await post('/team', bootstrap.team_token, { name: 'second' })
  const asOperator = await post('/api-token', bootstrap.team_token, {
    kind: 'team',
    team_id: team.id,
    name: 'second',
    preset: 'full',
  })
  const environment = await post('/environment', asOperator.token, { name: 'second' })
  const ofEnvironment = { kind: 'environment', environment_id: environment.id, name: 'second', preset: 'full' }
  const { token } = await post('/api-token', asOperator.token, ofEnvironment)
  const headers = { authorization: `Bearer ${token}` }
  return async () => {
    const answer = await fetch(`${url}/webhook?page_size=1`, { headers })
    await answer.arrayBuffer()
    if (answer.status !== 200) throw new Error(`the second tenant was answered ${answer.status}`)
  }
}

const SIGNED = {
  format: 'hmac',
  config: { secret: 'a'.repeat(32), parts: ['$body'], compare_with: '$header.x-signature' },
}
/** Definitions in the order of how much has to be read before a signature is verified. */
const WEBHOOKS: readonly JsonObject[] = [
  { signature_verification: SIGNED },
  { signature_verification: SIGNED, body_stage: 'decoded' },
  { signature_verification: SIGNED, handle_verification: '$exists(body.challenge) ? {"type": "verify"}' },
  {
    signature_verification: { format: 'compare', config: { secret: 'a'.repeat(32), compare_with: '$payload.secret' } },
  },
]

/** Accounts whose addresses read bodies in each order. */
async function webhookIds({ url, bootstrap }: RunningProduct, base_url: string): Promise<readonly string[]> {
  const { team_token: team, environment_token: environment } = bootstrap
  const ids: string[] = []
  for (const [index, webhook] of WEBHOOKS.entries()) {
    const credentials = { format: 'api_key', config: { fields: [{ name: 'a' }] } }
    const config = { base_url, credentials, webhook }
    const integration = await expectJson('POST', `${url}/integration`, team, { name: `flooded${index}`, config })
    const installation = await expectJson('POST', `${url}/environment-integration`, environment, {
      integration_id: integration.id,
    })
    const account = await expectJson('POST', `${url}/integrated-account`, environment, {
      environment_integration_id: installation.id,
      tenant_id: 'a',
      credentials: { a: 'a' },
    })
    ids.push(account.id)
  }
  return ids
}
