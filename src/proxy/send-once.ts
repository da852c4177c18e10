import { randomBytes } from 'node:crypto'
import type { Json } from '../base/index.ts'
import type { MethodPlan } from '../definition/index.ts'
import type { HttpClient } from '../egress/index.ts'
import type { Scope } from '../expression/index.ts'
import { charsetOf, decodeLarge, responseFormat, utf8 } from '../formats/index.ts'
import { buildRequest } from './build.ts'

const TEXT = responseFormat('text')

/** An answer to `sendOnce`, of any status. */
export interface OnceAnswer {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** In the request's response format; without one, or when it does not parse, the text as it came. */
  readonly body: Json
}

/** Bounds of `sendOnce`. */
export interface OnceLimits {
  readonly timeoutMs: number
  /** Decoded bytes. */
  readonly responseBytesMax: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Sends one request as it is written, for token endpoints: without authorization, redirect, repetition or judgement.
 *
 * @throws Failure PLACEHOLDER_UNRESOLVED, DEFINITION_INVALID, EGRESS_BLOCKED, UPSTREAM_UNREACHABLE, UPSTREAM_INVALID_RESPONSE,
 * DEADLINE_EXCEEDED, CANCELLED
 */
export async function sendOnce(
  http: Pick<HttpClient, 'send'>,
  method: MethodPlan,
  scope: Scope,
  { timeoutMs, responseBytesMax, signal }: OnceLimits,
): Promise<OnceAnswer> {
  const boundary = () => randomBytes(16).toString('hex')
  const target = { kind: 'path', verb: method.verb, path: '' } as const
  const { body, ...request } = buildRequest({ method, path: '' }, { target }, scope, undefined, boundary)
  const answer = await http.send({
    ...request,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
    timeoutMs,
    maxResponseBytes: responseBytesMax,
    redirects: 0,
  })
  const charset = charsetOf(answer.headers['content-type'] ?? '')
  return { status: answer.status, headers: answer.headers, body: await readBody(method, answer.body, charset) }
}

async function readBody({ responseFormat }: MethodPlan, body: Uint8Array, charset: string | undefined): Promise<Json> {
  if (body.byteLength === 0) return ''
  try {
    return await decodeLarge(responseFormat ?? TEXT, body, charset)
  } catch {
    return utf8(body)
  }
}
