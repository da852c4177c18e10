import { describe, expect, it } from 'vitest'
import { JsonNumber, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { examplePayload } from '../../../../src/platform/outbox/index.ts'
import { limitPayload, PAYLOAD_BYTES_MAX } from '../../../../src/platform/outbox/limit-payload.ts'
import { findPayloadProblem } from '../../../support/event-schemas.ts'

const RECORD = examplePayload('record:created')
const bytesOf = (payload: JsonObject) => Buffer.byteLength(JSON.stringify(payload))

/** A record event of exactly so many bytes, made of a character. */
function recordOf(bytes: number, character: string): JsonObject {
  const empty = bytesOf({ ...RECORD, data: '' })
  return { ...RECORD, data: character.repeat((bytes - empty) / (bytesOf({ x: character }) - bytesOf({ x: '' }))) }
}

describe('a payload', () => {
  it.each(['x', 'é', '漢', '\u0001'])('is kept as it is up to 256 KiB of %j', (character) => {
    const payload = recordOf(PAYLOAD_BYTES_MAX - 12, character)
    expect(limitPayload(payload)).toBe(payload)
    const longer = recordOf(PAYLOAD_BYTES_MAX + 12, character)
    const { data, ...others } = longer
    expect(limitPayload(longer)).toEqual({ ...others, truncated_fields: ['data'] })
  })

  it('loses its large fields one by one, and stays valid', () => {
    const large = { text: 'x'.repeat(200_000) }
    const account = { ...examplePayload('integrated_account:updated'), last_action_result: large }
    const one = limitPayload({ ...account, context: large })
    expect(one.truncated_fields).toEqual(['context'])
    expect(one.last_action_result).toBe(large)
    const error = 'y'.repeat(300_000)
    const all = limitPayload({ ...account, context: large, last_error: error })
    expect(all.truncated_fields).toEqual(['context', 'last_action_result', 'last_error'])
    expect(all.last_error).toBe('y'.repeat(4_096))
    for (const payload of [one, all])
      expect(findPayloadProblem({ type: 'integrated_account:updated', payload })).toBeUndefined()
  })

  it('keeps numbers that a double would change', () => {
    const payload = { ...RECORD, data: { total: new JsonNumber('12345678901234567890'), text: 'x'.repeat(50_000) } }
    expect(limitPayload(payload)).toBe(payload)
  })
})
