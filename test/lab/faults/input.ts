/**
 * Every field of every operation, every body, query and header meets what careless programs break on, over REST, Connect
 * JSON and Connect binary; the product runs as a process with an active account and a third party that answers. No answer
 * may be a 5xx, and none may take longer than a second. Operations and fields come from the contract.
 */

import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type DescMethodUnary, fromJson, getOption, hasOption, toBinary } from '@bufbuild/protobuf'
import { http } from '../../../gen/google/api/annotations_pb.ts'
import { newId } from '../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../src/foundation/json/index.ts'
import { createClient, type Protocol, type Sender } from '../../support/client.ts'
import { OPERATIONS } from '../../support/operations.ts'
import { removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { expectJson } from '../../support/rest.ts'
import { seedChain } from '../../support/seed.ts'
import { seedTenant } from '../../support/seeded-tenant.ts'
import { acceptableRequest, addHeldRun, type TenancyFixture } from '../../support/tenancy-matrix.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { MALICIOUS_BODIES, MALICIOUS_HEADERS, MALICIOUS_JSON, MALICIOUS_TEXTS } from './support/malicious-values.ts'
import { seededRandom } from './support/seeded-random.ts'

const PARALLEL = 8
const SLOW_MS = 1_000
/** Longer than any answer may take; what takes this long has hung. */
const HANG_MS = 20_000
const BINARY_MUTATIONS = 30
const REQUESTS_MIN = 20_000

/** Cut short, so that answers stay on one line of the report. */
const SHOWN_MAX = 200

interface Sent {
  readonly what: string
  readonly verb: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | undefined
}

interface Answered {
  readonly status: number
  readonly text: string
  readonly ms: number
}

const agent = new Agent({ keepAlive: true, maxSockets: PARALLEL })
const random = seededRandom('input')
const upstream = createServer((incoming, outgoing) => {
  incoming.resume()
  outgoing.writeHead(200, { 'content-type': 'application/json' }).end('{"data":[{"id":1}]}')
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
const dataDir = temporaryDataDir()
const product = await startProduct({
  dataDir,
  environment: {
    PATCHBAY_RATE_LIMIT: '0',
    PATCHBAY_RATE_LIMIT_ADDRESS: '0',
    PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
    PATCHBAY_LOG_LEVEL: 'error',
  },
})
const { url, bootstrap } = product
const { team_token: teamToken, environment_token: environmentToken, environment_id: environmentId } = bootstrap
const auth = { authorization: `Bearer ${teamToken}`, 'patchbay-environment': environmentId }
const world = await makeActiveWorld()

/** A world whose account is active, so that calls get as far as the third party. */
async function makeActiveWorld(): Promise<TenancyFixture> {
  const app = {
    first: { teamToken },
    client: (wire: Protocol, sender: Sender = {}) => createClient(wire, url, sender),
  }
  const tenant = { teamId: bootstrap.team_id, environmentId, teamToken, environmentToken }
  const made = await addHeldRun(app.client('connect', { token: environmentToken }), await seedTenant(app, tenant))
  const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const { integratedAccountId } = await seedChain({ url, teamToken, environmentToken, environmentId, upstreamUrl })
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(100)) {
    const account = await expectJson('GET', `${url}/integrated-account/${integratedAccountId}`, environmentToken)
    const [delivery] = (await expectJson('GET', `${url}/webhook-delivery`, environmentToken)).webhook_deliveries
    if (account.status === 'active' && delivery !== undefined)
      return { ...made, integratedAccountId, deliveryId: delivery.id, inboundEventId: newId(), callLogEntryId: newId() }
  }
  throw new Error('the account did not become active, or no event was dispatched')
}

/** Operations whose hostile requests may remove what the others need come last. */
const OPERATIONS_IN_ORDER = OPERATIONS.toSorted(
  (one, other) => Number(/^Delete/.test(one.name)) - Number(/^Delete/.test(other.name)),
)

function* everything(): Generator<Sent> {
  for (const method of OPERATIONS_IN_ORDER) {
    yield* fields(method)
    yield* bodies(method)
    yield* binaries(method)
  }
  yield* rawRoutes()
  yield* headers()
}

/** Every field with every hostile value, as Connect JSON and, where a path or a body carries it, as REST. */
function* fields(method: DescMethodUnary): Generator<Sent> {
  const acceptable = acceptableRequest(method, world)
  const values = [...MALICIOUS_TEXTS.map((text) => JSON.stringify(text)), ...MALICIOUS_JSON]
  for (const { name } of method.input.fields)
    for (const value of values) {
      const json = withField(acceptable, name, value)
      yield rpc(method, `${method.name}.${name} = ${value}`, 'application/json', json)
      yield* rest(method, name, acceptable, value)
    }
}

/** The request as JSON text, with a field whose value is given as text: numbers stay as they are spelt. */
function withField(request: JsonObject, name: string, value: string): string {
  const pairs = Object.entries({ ...request, [name]: '' }).map(
    ([key, own]) => `${JSON.stringify(key)}:${key === name ? value : JSON.stringify(own)}`,
  )
  return `{${pairs.join()}}`
}

function* rest(method: DescMethodUnary, name: string, request: JsonObject, value: string): Generator<Sent> {
  if (!hasOption(method, http)) return
  const { pattern, body } = getOption(method, http)
  if (pattern.case === undefined || pattern.case === 'custom') return
  const inPath = [...pattern.value.matchAll(/\{(\w+)\}/g)].map(([, variable = '']) => variable)
  const text = encodeURI(value.slice(0, 8_000)).replace(/[?#]/g, encodeURIComponent)
  const path = pattern.value.replace(/\{(\w+)\}/g, (_, variable: string) =>
    variable === name ? text : String(request[variable]),
  )
  const what = `${pattern.case} ${pattern.value} ${name} = ${value}`
  const verb = pattern.case.toUpperCase()
  const left = Object.fromEntries(Object.entries(request).filter(([key]) => !inPath.includes(key)))
  if (body === '*') {
    const json = inPath.includes(name) ? JSON.stringify(left) : withField(left, name, value)
    yield { what, verb, path, headers: { ...auth, 'content-type': 'application/json' }, body: json }
  } else yield { what, verb, path: inPath.includes(name) ? path : `${path}?${name}=${text}`, headers: auth }
}

function* bodies(method: DescMethodUnary): Generator<Sent> {
  for (const body of MALICIOUS_BODIES)
    yield rpc(method, `${method.name} body ${String(body)}`, 'application/json', body)
}

/** The protobuf bytes of an acceptable request with bytes changed, added and taken out. */
function* binaries(method: DescMethodUnary): Generator<Sent> {
  const bytes = toBinary(method.input, fromJson(method.input, acceptableRequest(method, world) as never))
  for (let count = 0; count < BINARY_MUTATIONS; count++) {
    const mutated = mutate(bytes)
    yield rpc(method, `${method.name} bytes ${Buffer.from(mutated).toString('hex')}`, 'application/proto', mutated)
  }
}

function mutate(bytes: Uint8Array): Uint8Array {
  const changed = [...bytes]
  for (let changes = 1 + Math.floor(random() * 4); changes > 0; changes--) {
    const at = Math.floor(random() * (changed.length + 1))
    const byte = Math.floor(random() * 256)
    changed.splice(at, random() < 0.5 ? 1 : 0, ...(random() < 0.8 ? [byte] : []))
  }
  return Uint8Array.from(changed)
}

/** The endpoints beside the contract, with hostile texts in path, query and body. */
function* rawRoutes(): Generator<Sent> {
  const account = `integrated_account_id=${world.integratedAccountId}`
  for (const value of MALICIOUS_TEXTS.map((text) => text.slice(0, 8_000))) {
    const text = percentEncode(value)
    for (const path of [
      `/proxy/${text}`,
      `/proxy/contacts/${text}`,
      `/proxy/contacts/1/${text}`,
      `/custom/${text}`,
      `/${text}`,
    ])
      yield { what: `GET ${path}`, verb: 'GET', path: `${path}?${account}`, headers: auth }
    for (const name of ['limit', 'cursor', 'id', 'dry_run', 'integrated_account_id', text])
      yield {
        what: `GET ${name}=${value}`,
        verb: 'GET',
        path: `/proxy/contacts?${account}&${name}=${text}`,
        headers: auth,
      }
  }
  for (const body of [...MALICIOUS_JSON, ...MALICIOUS_BODIES])
    for (const path of ['/proxy/contacts', '/custom/contacts'])
      yield {
        what: `POST ${path} ${String(body)}`,
        verb: 'POST',
        path: `${path}?${account}`,
        headers: { ...auth, 'content-type': 'application/json' },
        body,
      }
}

function* headers(): Generator<Sent> {
  const targets = [
    { verb: 'GET', path: '/sync-job' },
    { verb: 'GET', path: `/proxy/contacts?integrated_account_id=${world.integratedAccountId}` },
    { verb: 'POST', path: '/webhook', body: '{"target_url":"http://127.0.0.1:9/"}' },
    { verb: 'POST', path: '/patchbay.v1.WebhookService/ListWebhooks', body: '{}' },
  ]
  for (const target of targets)
    for (const [name, value] of MALICIOUS_HEADERS)
      yield {
        what: `${target.verb} ${target.path} ${name}: ${value}`,
        ...target,
        headers: { ...auth, 'content-type': 'application/json', [name]: value },
      }
}

function rpc(method: DescMethodUnary, what: string, type: string, body: string | Uint8Array): Sent {
  const path = `/${method.parent.typeName}/${method.name}`
  return { what, verb: 'POST', path, headers: { ...auth, 'content-type': type }, body }
}

/** Percent-encodes what a path segment cannot hold; a lone surrogate becomes the bytes UTF-8 would have for it. */
function percentEncode(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '')) || '%ED%A0%80'
}

/** @throws Error when the connection breaks before an answer */
function send({ verb, path, headers, body }: Sent): Promise<Answered> {
  const startedMs = performance.now()
  const { promise, resolve, reject } = Promise.withResolvers<Answered>()
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const call = request(
    url + path,
    { agent, method: verb, headers: { ...headers, ...length }, timeout: HANG_MS },
    (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        if (text.length < SHOWN_MAX) text += chunk
      })
      answer.once('end', () => resolve({ status: answer.statusCode ?? 0, text, ms: performance.now() - startedMs }))
    },
  )
  call.once('timeout', () => call.destroy(new Error(`no answer within ${HANG_MS} ms`))).once('error', reject)
  call.end(body)
  return promise
}

const faults = { failed: [] as string[], broken: [] as string[], slow: [] as string[] }
let sent = 0

/** A slow answer counts when it is slow again: the machine may have been busy with something else. */
async function check(one: Sent): Promise<void> {
  sent++
  const shown = one.what.slice(0, SHOWN_MAX)
  try {
    let answer = await send(one)
    for (let again = 0; answer.ms > SLOW_MS && again < 2; again++) answer = await send(one)
    if (answer.status >= 500) faults.failed.push(`${answer.status} ${shown}: ${answer.text.slice(0, SHOWN_MAX)}`)
    if (answer.ms > SLOW_MS) faults.slow.push(`${Math.round(answer.ms)} ms ${shown}`)
  } catch (error) {
    faults.broken.push(`${error} ${shown}`)
  }
}

const source = everything()
await Promise.all(
  Array.from({ length: PARALLEL }, async () => {
    for (const one of source) await check(one)
  }),
)
agent.destroy()
upstream.closeAllConnections()
upstream.close()
const exit = await product.stop()
removeDataDir(dataDir)
for (const line of Object.values(faults).flat()) process.stderr.write(`${line}\n`)
reportAtLeast('input/requests', sent, 'requests', REQUESTS_MIN)
reportAtMost('input/5xx', faults.failed.length, 'answers', 0)
reportAtMost('input/broken', faults.broken.length, 'connections', 0)
reportAtMost('input/slower-than-1-s', faults.slow.length, 'answers', 0)
reportAtMost('input/exit', exit ?? -1, 'code', 0)
