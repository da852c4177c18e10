import { Failure, isJsonNumber, isJsonObject, type Json, type JsonObject, toDouble } from '../base/index.ts'
import { ANSWER_BYTES_MAX, ANSWER_HEADERS, compileAnswer, type WebhookAnswer } from '../definitions/index.ts'
import { type Evaluator, environmentRoots } from '../expressions/index.ts'
import { expressionInput, type ParsedRequest } from './parsed-request.ts'
import type { InboundSource } from './source.ts'

/** What `handle_verification` says about a request. */
export interface Handshake {
  /** `verify`: it is answered here and is no event. `meta`: it is stored and leads to no event. */
  readonly type: 'verify' | 'payload' | 'meta'
  /** Absent: that of the definition. */
  readonly answer: WebhookAnswer | undefined
  /** An address that the third party asks to be visited. */
  readonly visitUrl: string | undefined
  /** Keys to be merged into the context; null removes one. Takes effect only as `updateInHandshake` allows, or once authenticated. */
  readonly contextUpdate: JsonObject | undefined
}

/** A request of a definition without a handshake. */
export const NO_HANDSHAKE: Handshake = {
  type: 'payload',
  answer: undefined,
  visitUrl: undefined,
  contextUpdate: undefined,
}

/** Expressions run on requests that are not authenticated yet: larger bodies are not evaluated before they are. */
export const UNVERIFIED_BYTES_MAX = 256 * 1024
/** Longest evaluation of one expression; a sandbox takes a millisecond when it is warm. */
const EVALUATION_MS_MAX = 250

const TYPES: readonly unknown[] = ['verify', 'payload', 'meta'] satisfies readonly Handshake['type'][]

/** What evaluating the expressions of a webhook block takes. */
export interface ExpressionDeps {
  readonly evaluator: Pick<Evaluator, 'evaluate'>
}

/**
 * The payload of a request: what `payload_transform` makes of the body, or the body. A result with the shape of its input,
 * `{body, headers?, query?, method?, path?}`, stands for its `body`: headers and parameters stay as they were received.
 *
 * @param isUnverified the request is not authenticated yet
 * @throws Failure EXPRESSION_FAILED, EXPRESSION_QUARANTINED; RATE_LIMITED, DEADLINE_EXCEEDED while there is no capacity
 */
export async function transformPayload(
  deps: ExpressionDeps,
  { webhook, environmentId }: Pick<InboundSource, 'webhook' | 'environmentId'>,
  request: ParsedRequest,
  isUnverified: boolean,
): Promise<Json> {
  if (webhook.payloadTransform === undefined) return request.body
  const input = expressionInput(request, request.body)
  const options = { owner: environmentId, isUnverified }
  const result = (await deps.evaluator.evaluate(webhook.payloadTransform, input, options)) ?? null
  return isRequestShape(result, input) ? (result.body ?? null) : result
}

/**
 * Evaluates `handle_verification`. Of the secrets its input holds those that it names.
 *
 * @param isUnverified the request is not authenticated yet
 * @throws Failure as `transformPayload`; EXPRESSION_FAILED also for a result that cannot be used, with the reason
 */
export async function evaluateHandshake(
  deps: ExpressionDeps,
  source: Pick<InboundSource, 'webhook' | 'environmentId' | 'values'>,
  request: ParsedRequest,
  payload: Json,
  isUnverified: boolean,
): Promise<Handshake> {
  const { handshake } = source.webhook
  if (handshake === undefined) return NO_HANDSHAKE
  const { context, credentials, environmentVariables, connection = {} } = source.values
  const input: JsonObject = {
    ...expressionInput(request, payload),
    // Decoded only for an expression that reads it.
    get raw_body() {
      return Buffer.from(request.decoded ?? request.raw).toString('utf8')
    },
    context,
    credentials: pick(credentials, handshake.credentialNames),
    connection,
    ...environmentRoots(handshake.expression, environmentVariables),
  }
  const options = { owner: source.environmentId, timeoutMs: EVALUATION_MS_MAX, isUnverified }
  return readHandshake(await deps.evaluator.evaluate(handshake.expression, input, options))
}

/** @throws Failure EXPRESSION_FAILED naming the member that has the wrong shape */
export function readHandshake(result: Json | undefined): Handshake {
  if (result === undefined || result === null) return NO_HANDSHAKE
  if (!isJsonObject(result)) throw wrong('must return an object with a type')
  const { type = 'payload', verification_response, verification_request, update_context } = result
  if (!TYPES.includes(type)) throw wrong('must return the type verify, payload or meta')
  const update = update_context ?? undefined
  if (update !== undefined && !isJsonObject(update)) throw wrong('must return update_context as an object')
  return {
    type: type as Handshake['type'],
    answer: readAnswer(verification_response ?? undefined),
    visitUrl: readVisit(verification_request ?? undefined),
    contextUpdate: update,
  }
}

function readVisit(request: Json | undefined): string | undefined {
  if (request === undefined) return undefined
  const url = isJsonObject(request) ? request.url : undefined
  if (typeof url !== 'string') throw wrong('must return verification_request as {url}')
  return url
}

/** Headers that an answer may not set are left out; everything else that is wrong rejects the whole answer. */
function readAnswer(response: Json | undefined): WebhookAnswer | undefined {
  if (response === undefined) return undefined
  if (!isJsonObject(response)) throw wrong('must return verification_response as an object')
  const { status_code: code = 200, body, headers = {} } = response
  const status = isJsonNumber(code) || typeof code === 'string' ? Number(toDouble(code)) : Number.NaN
  if (!isAnswerStatus(status)) throw wrong('must return a status_code from 200 to 299 or from 400 to 499')
  if (!isJsonObject(headers)) throw wrong('must return verification_response.headers as an object')
  const answer = compileAnswer({ status, body: body ?? undefined, headers: readHeaders(headers) })
  if (Buffer.byteLength(answer.body) > ANSWER_BYTES_MAX)
    throw wrong(`must return a body of at most ${ANSWER_BYTES_MAX} bytes`)
  return answer
}

function isAnswerStatus(status: number): boolean {
  return Number.isInteger(status) && ((status >= 200 && status <= 299) || (status >= 400 && status <= 499))
}

const HEADER_VALUE = /^[\t\x20-\x7e]{0,1024}$/

function readHeaders(headers: JsonObject): Record<string, string> {
  const allowed = Object.entries(headers).filter(([name]) => ANSWER_HEADERS.includes(name.toLowerCase()))
  return Object.fromEntries(
    allowed.map(([name, value]) => {
      const text = typeof value === 'string' || isJsonNumber(value) ? String(value) : undefined
      if (text === undefined || !HEADER_VALUE.test(text))
        throw wrong(`must return a text that the header ${name} can have`)
      return [name, text]
    }),
  )
}

function isRequestShape(result: Json, input: JsonObject): result is JsonObject {
  return isJsonObject(result) && Object.hasOwn(result, 'body') && Object.keys(result).every((key) => key in input)
}

function pick(values: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(values, name) ? [[name, values[name] ?? null]] : [])),
  )
}

function wrong(what: string): Failure {
  return new Failure('EXPRESSION_FAILED', `handle_verification ${what}`)
}
