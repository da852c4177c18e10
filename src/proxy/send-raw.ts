import { randomBytes } from 'node:crypto'
import { Failure, type Json, type TaskOwner } from '../base/index.ts'
import type { MethodPlan } from '../definitions/index.ts'
import type { HttpClient } from '../egress/index.ts'
import type { TemplateScope } from '../expressions/index.ts'
import { charsetOf, decodeLarge, decodeUtf8, responseFormat } from '../formats/index.ts'
import { buildRequest } from './build-request.ts'

const TEXT = responseFormat('text')

/** The response to `sendRaw`, of any status. */
export interface RawResponse {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Cookies that it sets, by name; absent: none. */
  readonly cookies?: Readonly<Record<string, string>> | undefined
  /** Decoded in the response format of the request; without one, or when it does not parse, the text. */
  readonly body: Json
}

/** Limits of `sendRaw`. */
export interface RawSendLimits {
  readonly timeoutMs: number
  /** Decoded bytes. */
  readonly responseBytesMax: number
  readonly signal?: AbortSignal | undefined
  /** Whose connections and responses take turns with those of others. */
  readonly owner: string
}

/**
 * Sends one request for a token endpoint: without authorization, redirects, retries or classification.
 *
 * @throws Failure PLACEHOLDER_UNRESOLVED, DEFINITION_INVALID, EGRESS_BLOCKED, UPSTREAM_UNREACHABLE, UPSTREAM_INVALID_RESPONSE,
 * DEADLINE_EXCEEDED, CANCELLED
 */
export async function sendRaw(
  http: Pick<HttpClient, 'send'>,
  method: MethodPlan,
  scope: TemplateScope,
  { timeoutMs, responseBytesMax, signal, owner }: RawSendLimits,
): Promise<RawResponse> {
  const boundary = () => randomBytes(16).toString('hex')
  const target = { kind: 'path', verb: method.verb, path: '' } as const
  const { body, ...request } = buildRequest({ method, path: '' }, { target }, scope, undefined, boundary)
  const response = await http.send({
    ...request,
    owner,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
    timeoutMs,
    maxResponseBytes: responseBytesMax,
    redirects: 0,
  })
  const charset = charsetOf(response.headers['content-type'] ?? '')
  return {
    status: response.status,
    headers: response.headers,
    cookies: response.cookies,
    body: await decodeRawBody(method, response.body, charset, { owner, signal }),
  }
}

async function decodeRawBody(
  { responseFormat }: MethodPlan,
  body: Uint8Array,
  charset: string | undefined,
  owner: TaskOwner,
): Promise<Json> {
  if (body.byteLength === 0) return ''
  try {
    return await decodeLarge(responseFormat ?? TEXT, body, charset, owner)
  } catch (error) {
    if (error instanceof Failure) throw error
    return decodeUtf8(body)
  }
}
