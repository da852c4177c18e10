import { isDeepStrictEqual } from 'node:util'
import type { RequestMember, TransformPlan } from '../../engine/definitions/index.ts'
import { environmentRoots } from '../../engine/expressions/index.ts'
import { Failure } from '../../foundation/base/index.ts'
import { isJsonNumber, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { EXPRESSION_BYTES_MAX, type ExpressionDeps } from './handshake.ts'
import { expressionInput, type ParsedRequest } from './parsed-request.ts'
import type { InboundSource } from './source.ts'

/** A request as `payload_transform` has made it, and what is different from the one that was received. */
export interface TransformedRequest {
  /** `body` is the payload; `raw` and `decoded` are the bytes that were received. */
  readonly request: ParsedRequest
  /** For the trace: `{changed, headers?, query?, method?, path?}`; of headers and parameters the names. Empty without a transform. */
  readonly changes: JsonObject
}

/**
 * Evaluates `payload_transform`. A result of the shape of its input, `{body, headers?, query?, method?, path?}`, replaces the
 * members that it has, where the expression writes them (`TransformPlan.members`); any other result replaces the body.
 *
 * @param isUnverified the request is not authenticated yet
 * @throws Failure EXPRESSION_FAILED, also for a member of another type; EXPRESSION_QUARANTINED; RATE_LIMITED,
 * DEADLINE_EXCEEDED while there is no capacity
 */
export async function transformRequest(
  deps: ExpressionDeps,
  { webhook, environmentId, values }: Pick<InboundSource, 'webhook' | 'environmentId' | 'values'>,
  received: ParsedRequest,
  isUnverified: boolean,
): Promise<TransformedRequest> {
  const { payloadTransform: transform } = webhook
  if (transform === undefined) return { request: received, changes: {} }
  const input = { ...expressionInput(received), ...environmentRoots(transform.expression, values.environmentVariables) }
  const limits = { inputBytesMax: EXPRESSION_BYTES_MAX, resultBytesMax: EXPRESSION_BYTES_MAX }
  const options = { owner: environmentId, isUnverified, ...limits }
  const result = (await deps.evaluator.evaluate(transform.expression, input, options)) ?? null
  return withBodyOrMembers(received, result, transform, input)
}

/** The request with a payload that was made before. */
export function withPayload(received: ParsedRequest, payload: Json): TransformedRequest {
  return { request: { ...received, body: payload }, changes: { changed: ['body'] } }
}

function withBodyOrMembers(
  received: ParsedRequest,
  result: Json,
  { members }: TransformPlan,
  input: JsonObject,
): TransformedRequest {
  const isRequest = members.has('body') && isJsonObject(result) && Object.hasOwn(result, 'body')
  const request =
    isRequest && Object.keys(result).every((key) => key in input)
      ? withMembers(received, result, members)
      : { ...received, body: result }
  return { request, changes: describeChanges(received, request) }
}

function withMembers(received: ParsedRequest, result: JsonObject, members: ReadonlySet<RequestMember>): ParsedRequest {
  const given = (member: RequestMember) => (members.has(member) ? (result[member] ?? undefined) : undefined)
  const method = readMethod(given('method')) ?? received.method
  const path = readPath(given('path')) ?? received.path
  const query = readTexts(given('query'), 'query', (name) => name) ?? received.query
  const headers = readTexts(given('headers'), 'headers', (name) => name.toLowerCase()) ?? received.headers
  const url = urlOf(received, path, query)
  return { ...received, method, path, query, headers, url, body: result.body ?? null }
}

const METHOD = /^[A-Za-z]{1,32}$/
const PATH_LENGTH_MAX = 8_192

function readMethod(value: Json | undefined): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string' || !METHOD.test(value)) throw wrong('method as the name of one, such as POST')
  return value.toUpperCase()
}

function readPath(value: Json | undefined): string | undefined {
  if (value === undefined) return undefined
  const isPath = typeof value === 'string' && value.startsWith('/') && value.length <= PATH_LENGTH_MAX
  if (!isPath || /[?#]/.test(value)) throw wrong('path as a text that begins with / and has no query')
  return value
}

/** Null values are left out. */
function readTexts(
  value: Json | undefined,
  member: 'headers' | 'query',
  keyOf: (name: string) => string,
): Readonly<Record<string, string>> | undefined {
  if (value === undefined) return undefined
  if (!isJsonObject(value)) throw wrong(`${member} as an object of texts`)
  const entries = Object.entries(value).flatMap(([name, each]): [string, string][] => {
    if (each === null) return []
    if (typeof each !== 'string' && typeof each !== 'boolean' && !isJsonNumber(each))
      throw wrong(`${member} as an object of texts`)
    return [[keyOf(name), String(each)]]
  })
  return Object.fromEntries(entries)
}

/** As received as far as it is unchanged: what was signed of it may be encoded in more than one way. */
function urlOf(received: ParsedRequest, path: string, query: ParsedRequest['query']): string {
  const [address = '', ...search] = received.url.split('?')
  const base = address.slice(0, address.length - received.path.length)
  const isSame = query === received.query || isDeepStrictEqual({ ...query }, { ...received.query })
  const text = isSame ? search.join('?') : new URLSearchParams(query).toString()
  return `${base}${path}${text === '' ? '' : `?${text}`}`
}

function describeChanges(received: ParsedRequest, request: ParsedRequest): JsonObject {
  const facts: Record<string, Json> = {}
  const changed: string[] = []
  if (!isDeepStrictEqual(request.body, received.body)) changed.push('body')
  for (const member of ['headers', 'query'] as const) {
    const names = changedNames(received[member], request[member])
    if (names !== undefined) facts[member] = names
  }
  for (const member of ['method', 'path'] as const)
    if (request[member] !== received[member]) facts[member] = request[member]
  return { changed: [...changed, ...Object.keys(facts)], ...facts }
}

const NAMES_SHOWN_MAX = 32

/** Names alone: the values may be credentials. */
function changedNames(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): JsonObject | undefined {
  if (before === after) return undefined
  const set = Object.keys(after).filter(
    (name) => after[name] !== (Object.hasOwn(before, name) ? before[name] : undefined),
  )
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name))
  if (set.length + removed.length === 0) return undefined
  return { set: set.slice(0, NAMES_SHOWN_MAX), removed: removed.slice(0, NAMES_SHOWN_MAX) }
}

function wrong(what: string): Failure {
  return new Failure('EXPRESSION_FAILED', `payload_transform must return ${what}`)
}
