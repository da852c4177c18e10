import { randomBytes } from 'node:crypto'
import { Failure } from '../../foundation/base/index.ts'
import type { EgressResponse, HttpClient } from '../../foundation/egress/index.ts'
import type { TaskOwner } from '../../foundation/fair/index.ts'
import type { Json } from '../../foundation/json/index.ts'
import type { MethodPlan } from '../definitions/plan.ts'
import type { TemplateScope } from '../expressions/placeholder.ts'
import { formFields, isFormType, readForm } from '../formats/form.ts'
import { CharsetError, charsetOf, decodeAnyText, decodeLoosely } from '../formats/response/charset.ts'
import { decodeLarge } from '../formats/response/decode-large.ts'
import { buildRequest } from './build-request.ts'

/** The response to `sendRaw`, of any status. */
export interface RawResponse {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Cookies that it sets, by name; absent: none. */
  readonly cookies?: Readonly<Record<string, string>> | undefined
  /** Decoded in the response format of the request; without one the fields of a form, else, or when it does not parse, the text. */
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
  const { status, headers, cookies } = response
  return { status, headers, cookies, body: await decodeRawBody(method, response, { owner, signal }) }
}

/**
 * A token with a replaced character would be another token.
 *
 * @throws Failure UPSTREAM_INVALID_RESPONSE for a success whose bytes are not in its charset
 */
async function decodeRawBody(
  { responseFormat }: MethodPlan,
  { status, headers, body }: EgressResponse,
  owner: TaskOwner,
): Promise<Json> {
  if (body.byteLength === 0) return ''
  const contentType = headers['content-type'] ?? ''
  const charset = charsetOf(contentType)
  try {
    if (responseFormat !== undefined) return await decodeLarge(responseFormat, body, charset, owner)
    return readFormAnswer(body, contentType) ?? decodeAnyText(body, charset)
  } catch (error) {
    if (error instanceof Failure) throw error
    if (!(error instanceof CharsetError) || status >= 400) return decodeLoosely(body, charset)
    const message = `the upstream answered ${status} with a body that ${error.message}`
    throw new Failure('UPSTREAM_INVALID_RESPONSE', message, { isPermanent: true, cause: error })
  }
}

/** Names and values without blanks; what begins like JSON or markup is no form, whatever its type says. */
const FORM = /^[^\s<>=&[{"]+=[^\s<>]*$/

/** The fields of a form, values in its charset; `undefined` for anything else. */
function readFormAnswer(body: Uint8Array, contentType: string): Json | undefined {
  if (!isFormType(contentType)) return undefined
  const text = Buffer.from(body).toString('latin1').trim()
  const fields = FORM.test(text) ? readForm(Buffer.from(text, 'latin1'), contentType) : undefined
  return fields === undefined ? undefined : formFields(fields)
}
