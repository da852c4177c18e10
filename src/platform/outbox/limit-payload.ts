import { exceedsJsonSize, type Json, type JsonObject } from '../../foundation/json/index.ts'

/** Longest payload, in bytes of JSON as it is delivered. */
export const PAYLOAD_BYTES_MAX = 256 * 1024
/** A character of JSON has at most so many bytes, as an escape. */
const CHARACTER_BYTES_MAX = 6
/** Fields that may be large and can be read elsewhere, in the order in which they are left out. */
const LARGE_FIELDS = ['data', 'context', 'args', 'last_action_result', 'resource_stats']
/** Characters that are kept of a text in a payload that is still too long without its large fields. */
const TEXT_LENGTH_MAX = 4 * 1024

/**
 * The payload in at most `PAYLOAD_BYTES_MAX` bytes: without as many of its large fields as it takes, then with its texts cut to
 * 4 Ki characters. `truncated_fields` names what was left out or cut.
 *
 * @throws Error for a payload that is too long without them: no event has so many fields
 */
export function limitPayload(payload: JsonObject): JsonObject {
  if (fits(payload)) return payload
  let left = payload
  const truncated: string[] = []
  for (const field of LARGE_FIELDS) {
    if (left[field] === undefined) continue
    const { [field]: _, ...others } = left
    truncated.push(field)
    left = { ...others, truncated_fields: [...truncated] }
    if (fits(left)) return left
  }
  const long = Object.keys(left).filter((field) => isLongText(left[field]))
  const cut = Object.fromEntries(long.map((field) => [field, String(left[field]).slice(0, TEXT_LENGTH_MAX)]))
  const limited = { ...left, ...cut, truncated_fields: [...truncated, ...long] }
  if (!fits(limited)) throw new Error('the payload of an event is too long')
  return limited
}

function isLongText(value: Json | undefined): boolean {
  return typeof value === 'string' && value.length > TEXT_LENGTH_MAX
}

/** Nearly every payload is so short that counting its characters is enough. */
function fits(payload: JsonObject): boolean {
  if (!exceedsJsonSize(payload, PAYLOAD_BYTES_MAX / CHARACTER_BYTES_MAX)) return true
  return !exceedsJsonSize(payload, PAYLOAD_BYTES_MAX) && Buffer.byteLength(JSON.stringify(payload)) <= PAYLOAD_BYTES_MAX
}
