import type { Json, JsonObject } from '../base/index.ts'
import type { RESPONSE_ROOTS } from '../formats/index.ts'
import type { DecodedResponse } from './decode.ts'

/**
 * What `is_rate_limited`, the header expressions and `error_expression` see: `response {status, headers, body}`, and bare
 * `status`, `headers`, `body`, `data` (the body again).
 */
export function responseInput({
  status,
  headers,
  body,
}: DecodedResponse): JsonObject & Record<(typeof RESPONSE_ROOTS)[number], Json> {
  return { response: { status, headers, body }, status, headers, body, data: body }
}
