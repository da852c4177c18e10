import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { CreateIntegrationRequestSchema } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { decodeBinary } from '../../src/api/messages/codec.ts'
import { parseRequestJson } from '../../src/api/messages/json-text.ts'
import { findUnstorableFields } from '../../src/api/messages/storable.ts'
import { findTextProblems } from '../../src/api/services/values.convert.ts'
import { findUnstorable, JSON_VALUES_MAX } from '../../src/base/index.ts'

/** A list with that many values: itself and its elements. */
const listOf = (count: number) => `[${'1,'.repeat(count - 2)}1]`
const tooLarge = expect.objectContaining({ reason: 'REQUEST_TOO_LARGE' })

describe('a request with as many values as are read', () => {
  it('is read as JSON, and refused with one more', () => {
    expect(parseRequestJson(Buffer.from(listOf(JSON_VALUES_MAX)))).toHaveLength(JSON_VALUES_MAX - 1)
    expect(() => parseRequestJson(Buffer.from(listOf(JSON_VALUES_MAX + 1)))).toThrow(tooLarge)
  })

  it('is read as protobuf, and refused with more', () => {
    const request = (count: number) =>
      toBinary(
        CreateIntegrationRequestSchema,
        create(CreateIntegrationRequestSchema, { name: 'a', config: { a: Array.from({ length: count }, () => null) } }),
      )
    const { message } = decodeBinary(CreateIntegrationRequestSchema, request(20_000))
    expect(message).toMatchObject({ name: 'a', config: { a: { length: 20_000 } } })
    expect(() => decodeBinary(CreateIntegrationRequestSchema, request(60_000))).toThrow(tooLarge)
  })

  it('is read from a field with JSON text, and a finding with more', () => {
    expect(findTextProblems('values_json', `{"a":${listOf(1_000)}}`)).toEqual([])
    expect(findTextProblems('values_json', `{"a":${listOf(JSON_VALUES_MAX)}}`)).toEqual([
      { field: 'values_json', description: 'must have at most 50000 values', rule: 'json_text' },
    ])
  })
})

it('unknown fields are left out of a binary message', () => {
  const unknown = Buffer.from('\xf8\x07\x01'.repeat(3), 'latin1')
  const { message } = decodeBinary(CreateIntegrationRequestSchema, unknown)
  expect(message.$unknown).toBeUndefined()
})

it('at most 100 values that cannot be stored are told', () => {
  const bad = Array.from({ length: 1_000 }, () => ({ ['__proto__']: 1, a: '\u0000', b: Number.NaN }))
  expect(findUnstorable(bad, 'a')).toHaveLength(100)
  const message = create(CreateIntegrationRequestSchema, { config: { bad } as never })
  expect(findUnstorableFields(CreateIntegrationRequestSchema, message)).toHaveLength(100)
})
