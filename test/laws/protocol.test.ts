import { getOption, hasOption } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import { http } from '../../gen/google/api/annotations_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { someCases } from '../support/case-count.ts'
import { OPERATIONS } from '../support/operations.ts'

const app = await startTestApp()

/** Addresses of which `npm test` tries each way to break a request, others in each block: about a tenth of the contract's. */
const FEW = 10
const VERBS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']
const CREDENTIALS = {
  authorization: `Bearer ${app.first.teamToken}`,
  'patchbay-environment': app.first.environmentId,
}

interface Route {
  readonly verb: string
  readonly pattern: string
  /** The pattern with an id in place of every variable. */
  readonly path: string
  readonly hasBody: boolean
}

/** Every REST address of the contract. */
const ROUTES: readonly Route[] = OPERATIONS.filter((method) => hasOption(method, http)).map((method) => {
  const { pattern, body } = getOption(method, http)
  if (pattern.case === undefined || pattern.case === 'custom') throw new Error(method.name)
  const path = pattern.value.replace(/\{\w+\}/g, () => newId())
  return { verb: pattern.case.toUpperCase(), pattern: pattern.value, path, hasBody: body !== '' }
})
const WITH_BODY = ROUTES.filter(({ hasBody }) => hasBody)
const WITHOUT_BODY = ROUTES.filter(({ hasBody }) => !hasBody)
const PATHS = [...new Map(ROUTES.map((route) => [route.pattern, route])).values()]
const RPCS = OPERATIONS.map((method) => ({ method, path: `/${method.parent.typeName}/${method.name}` }))

/** Verbs of every address that the path could mean: `/sync-job/preview` also looks like `/sync-job/{id}`. */
function verbsAt(path: string): readonly string[] {
  const isAt = ({ pattern }: Route) => new RegExp(`^${pattern.replace(/\{\w+\}/g, '[^/]+')}$`).test(path)
  return ROUTES.filter(isAt).map(({ verb }) => verb)
}

interface Refused {
  readonly status: number
  readonly reason: string | undefined
  readonly message: string
  readonly headers: Headers
}

interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

async function send(verb: string, path: string, { headers, body }: Sent = {}): Promise<Refused> {
  const answer = await fetch(app.url + path, {
    method: verb,
    headers: { ...CREDENTIALS, ...headers },
    ...(body === undefined ? {} : { body }),
  })
  const json = (await answer.json()) as JsonObject
  const error = (json.error ?? json) as {
    message?: string
    details?: { reason?: string; debug?: { reason: string } }[]
  }
  const [info] = error.details ?? []
  const reason = info?.reason ?? info?.debug?.reason
  return { status: answer.status, reason, message: error.message ?? '', headers: answer.headers }
}

const asJson = (body: string, headers: Readonly<Record<string, string>> = {}): Sent => ({
  headers: { 'content-type': 'application/json', ...headers },
  body,
})

/** Ways to send a body that nothing reads, and what is answered. */
const BAD_BODIES: readonly (readonly [what: string, sent: Sent, status: number, reason: string, says: string])[] = [
  [
    'text',
    { headers: { 'content-type': 'text/plain' }, body: '{}' },
    415,
    'UNSUPPORTED_MEDIA_TYPE',
    'application/json',
  ],
  [
    'a form',
    asJson('a=1', { 'content-type': 'application/x-www-form-urlencoded' }),
    415,
    'UNSUPPORTED_MEDIA_TYPE',
    'json',
  ],
  [
    'another charset',
    asJson('{}', { 'content-type': 'application/json; charset=latin1' }),
    415,
    'UNSUPPORTED_MEDIA_TYPE',
    'UTF-8',
  ],
  ['an unknown encoding', asJson('{}', { 'content-encoding': 'zstd' }), 415, 'COMPRESSION_UNSUPPORTED', 'gzip'],
  ['two encodings', asJson('{}', { 'content-encoding': 'gzip, gzip' }), 415, 'COMPRESSION_UNSUPPORTED', 'gzip'],
  ['no gzip', asJson('{}', { 'content-encoding': 'GZIP' }), 400, 'MALFORMED_BODY', 'gzip'],
  ['no JSON', asJson('{"a":}'), 400, 'MALFORMED_BODY', 'line 1, column 6'],
  ['no object', asJson('[]'), 400, 'MALFORMED_BODY', 'object'],
  ['a key twice', asJson('{"a":1,"a":2}'), 400, 'MALFORMED_BODY', 'twice'],
  ['an unknown field', asJson('{"surprise":1}'), 400, 'INVALID_FIELD', 'surprise'],
]

describe('a verb that a path does not take', () => {
  it.each(someCases(PATHS, 3 * FEW))('is 405 with those it takes: $path', async ({ path }) => {
    const verbs = verbsAt(path)
    const allow = [...verbs, ...(verbs.includes('GET') ? ['HEAD'] : []), 'OPTIONS']
    for (const verb of VERBS.filter((candidate) => !verbs.includes(candidate))) {
      const { status, reason, headers } = await send(verb, path)
      expect([verb, status, reason]).toEqual([verb, 405, 'METHOD_NOT_ALLOWED'])
      expect(headers.get('allow')?.split(', ')).toEqual([...new Set(allow)].toSorted())
    }
  })

  it.each(someCases(RPCS, 3 * FEW))('is 405 with those it takes: $path', async ({ method, path }) => {
    const isSafe = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
    for (const verb of VERBS.filter((candidate) => candidate !== 'POST' && !(isSafe && candidate === 'GET'))) {
      const { status, reason, headers } = await send(verb, path)
      expect([verb, status, reason]).toEqual([verb, 405, 'METHOD_NOT_ALLOWED'])
      expect(headers.get('allow')).toBe(isSafe ? 'GET, HEAD, OPTIONS, POST' : 'OPTIONS, POST')
    }
  })

  it.each([
    ['/healthz', 'POST', 'GET, HEAD, OPTIONS'],
    ['/healthz/scheduler', 'PUT', 'GET, HEAD, OPTIONS'],
    ['/openapi.json', 'DELETE', 'GET, HEAD, OPTIONS'],
    ['/asyncapi.json', 'DELETE', 'GET, HEAD, OPTIONS'],
    ['/schemas/events.json', 'POST', 'GET, HEAD, OPTIONS'],
    ['/schemas/integration-config.json', 'POST', 'GET, HEAD, OPTIONS'],
    ['/proxy/contacts', 'DELETE', 'GET, HEAD, OPTIONS, POST'],
    ['/proxy/contacts/7', 'PROPFIND', 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT'],
    ['/proxy/_/action', 'GET', 'OPTIONS, POST'],
    ['/grpc.health.v1.Health/Watch', 'GET', 'OPTIONS, POST'],
    ['/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', 'GET', 'OPTIONS, POST'],
  ])('is 405 with those it takes: %s', async (path, verb, allow) => {
    const { status, reason, headers } = await send(verb, path)
    expect([status, reason, headers.get('allow')]).toEqual([405, 'METHOD_NOT_ALLOWED', allow])
    const options = await fetch(app.url + path, { method: 'OPTIONS' })
    expect([options.status, options.headers.get('allow')]).toEqual([204, allow])
  })
})

describe.each(BAD_BODIES.map((each, turn) => [...each, turn] as const))('a body that is %s', (...row) => {
  const [, sent, status, reason, says, turn] = row

  it.each(someCases(WITH_BODY, FEW, turn))('gets over REST: $verb $pattern', async ({ verb, path }) => {
    const refused = await send(verb, path, sent)
    expect([refused.status, refused.reason]).toEqual([status, reason])
    expect(refused.message).toContain(says)
  })

  it.each(someCases(RPCS, FEW, turn))('gets over Connect: $path', async ({ path }) => {
    const refused = await send('POST', path, sent)
    expect([refused.status, refused.reason]).toEqual([status, reason])
    expect(refused.message).toContain(says)
  })
})

describe('an address without a body', () => {
  it.each(WITHOUT_BODY)('names what is wrong with its query: $verb $pattern', async ({ verb, path }) => {
    for (const [query, field] of [
      ['surprise=1', 'surprise'],
      ['surprise=%ff', 'surprise'],
      ['%ff', '%ff'],
    ]) {
      const { status, reason, message } = await send(verb, `${path}?${query}`)
      expect([status, reason]).toEqual([400, 'INVALID_FIELD'])
      expect(message).toContain(field)
    }
  })
})

describe('a gRPC-Web call', () => {
  const outcome = async (
    path: string,
    body: Uint8Array<ArrayBuffer>,
    headers: Readonly<Record<string, string>> = {},
  ) => {
    const answer = await fetch(app.url + path, {
      method: 'POST',
      headers: { ...CREDENTIALS, 'content-type': 'application/grpc-web', ...headers },
      body,
    })
    return /grpc-status: (\d+)/.exec(await answer.text())?.[1]
  }
  const message = (flags = 0) => new Uint8Array([flags, 0, 0, 0, 0])

  it.each(someCases(RPCS, 3 * FEW))('of broken framing has the prescribed code: $path', async ({ path }) => {
    expect(await outcome(path, new Uint8Array())).toBe('12')
    expect(await outcome(path, new Uint8Array([...message(), ...message()]))).toBe('12')
    expect(await outcome(path, message(), { 'grpc-encoding': 'zstd' })).toBe('12')
    expect(await outcome(path, message(1))).toBe('13')
    expect(await outcome(path, message(8))).toBe('3')
  })
})

it('the contract has addresses of every kind', () => {
  expect([WITH_BODY.length > 20, WITHOUT_BODY.length > 20, RPCS.length > 50]).toEqual([true, true, true])
})
