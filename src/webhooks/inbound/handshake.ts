import {
  ANSWER_BYTES_MAX,
  compileAnswer,
  isAnswerHeaderValue,
  isFinalStatus,
  pickAnswerHeaders,
  type WebhookAnswer,
} from '../../engine/definitions/index.ts'
import { type Evaluator, environmentRoots } from '../../engine/expressions/index.ts'
import { Failure } from '../../foundation/base/index.ts'
import { isJsonNumber, isJsonObject, type Json, type JsonObject, toDouble } from '../../foundation/json/index.ts'
import { expressionInput, type ParsedRequest } from './parsed-request.ts'
import type { InboundSource } from './source.ts'

/** What `handle_verification` says about a request. */
export interface Handshake {
  /** `verify`: it is answered here and is no event. `meta`: it is stored and leads to no event. */
  readonly type: 'verify' | 'payload' | 'meta'
  /** Absent: that of the definition. */
  readonly answer: WebhookAnswer | undefined
  /** What of its answer is not sent, and why. */
  readonly leftOut: readonly string[]
  /** An address that the third party asks to be visited. */
  readonly confirmUrl: string | undefined
  /** Keys to be merged into the context; null removes one. Takes effect only as `updateInHandshake` allows, or once authenticated. */
  readonly contextUpdate: JsonObject | undefined
}

/** A request of a definition without a handshake. */
export const NO_HANDSHAKE: Handshake = {
  type: 'payload',
  answer: undefined,
  leftOut: [],
  confirmUrl: undefined,
  contextUpdate: undefined,
}

/** Expressions run on requests that are not authenticated yet: larger bodies are not evaluated before they are. */
export const UNVERIFIED_BYTES_MAX = 256 * 1024
/** What an expression in the sandbox may read and return, in bytes of JSON: an item may repeat parts of the payload. */
export const EXPRESSION_BYTES_MAX = 5 * 1024 * 1024
/** Longest evaluation of one expression; a sandbox takes a millisecond when it is warm. */
const EVALUATION_MS_MAX = 250

const TYPES: readonly unknown[] = ['verify', 'payload', 'meta'] satisfies readonly Handshake['type'][]

/** What evaluating the expressions of a webhook block takes. */
export interface ExpressionDeps {
  readonly evaluator: Pick<Evaluator, 'evaluate'>
}

/**
 * Evaluates `handle_verification`. Of the secrets its input holds those that it names.
 *
 * @param isUnverified the request is not authenticated yet
 * @throws Failure as `transformRequest`; EXPRESSION_FAILED also for a result that cannot be used, with the reason
 */
export async function evaluateHandshake(
  deps: ExpressionDeps,
  source: Pick<InboundSource, 'webhook' | 'environmentId' | 'values'>,
  request: ParsedRequest,
  isUnverified: boolean,
): Promise<Handshake> {
  const { handshake } = source.webhook
  if (handshake === undefined) return NO_HANDSHAKE
  const { context, credentials, environmentVariables, connection = {} } = source.values
  const input: JsonObject = {
    ...expressionInput(request),
    // Decoded only for an expression that reads it.
    get raw_body() {
      return Buffer.from(request.decoded ?? request.raw).toString('utf8')
    },
    context,
    credentials: pick(credentials, handshake.credentialNames),
    connection,
    ...environmentRoots(handshake.expression, environmentVariables),
  }
  const limits = { timeoutMs: EVALUATION_MS_MAX, inputBytesMax: EXPRESSION_BYTES_MAX }
  const options = { owner: source.environmentId, isUnverified, ...limits }
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
    ...readAnswer(verification_response ?? undefined),
    confirmUrl: readConfirmation(verification_request ?? undefined),
    contextUpdate: update,
  }
}

function readConfirmation(request: Json | undefined): string | undefined {
  if (request === undefined) return undefined
  const url = isJsonObject(request) ? request.url : undefined
  if (typeof url !== 'string') throw wrong('must return verification_request as {url}')
  return url
}

/** Headers that an answer may not set are left out; everything else that is wrong rejects the whole answer. */
function readAnswer(response: Json | undefined): Pick<Handshake, 'answer' | 'leftOut'> {
  if (response === undefined) return { answer: undefined, leftOut: [] }
  if (!isJsonObject(response)) throw wrong('must return verification_response as an object')
  const { status_code: code = 200, body, headers = {} } = response
  const status = isJsonNumber(code) || typeof code === 'string' ? Number(toDouble(code)) : Number.NaN
  if (!isFinalStatus(status)) throw wrong('must return a status_code from 200 to 599')
  if (!isJsonObject(headers)) throw wrong('must return verification_response.headers as an object')
  const { headers: picked, leftOut } = pickAnswerHeaders(headers)
  const answer = compileAnswer({ status, body: body ?? undefined, headers: readHeaders(picked) })
  if (Buffer.byteLength(answer.body) > ANSWER_BYTES_MAX)
    throw wrong(`must return a body of at most ${ANSWER_BYTES_MAX} bytes`)
  return { answer, leftOut }
}

function readHeaders(headers: Readonly<Record<string, Json>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      const isScalar = typeof value === 'string' || typeof value === 'boolean' || isJsonNumber(value)
      if (!isScalar || !isAnswerHeaderValue(String(value)))
        throw wrong(`must return a text that the header ${name} can have`)
      return [name, String(value)]
    }),
  )
}

function pick(values: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(values, name) ? [[name, values[name] ?? null]] : [])),
  )
}

function wrong(what: string): Failure {
  return new Failure('EXPRESSION_FAILED', `handle_verification ${what}`)
}

/** What the trace says about a handshake. */
export function handshakeFacts({ type, leftOut }: Handshake): JsonObject {
  return { type, ...(leftOut.length > 0 ? { left_out: [...leftOut] } : {}) }
}
