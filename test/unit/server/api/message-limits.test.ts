import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { CreateIntegrationRequestSchema } from '../../../../gen/patchbay/v1/integration_service_pb.ts'
import { ListPagesResponseSchema } from '../../../../gen/patchbay/v1/proxy_service_pb.ts'
import { findUnstorable, JSON_VALUES_MAX } from '../../../../src/foundation/json/index.ts'
import { assertFewFields, toEncodable } from '../../../../src/server/api/messages/binary.ts'
import { parseRequestJson } from '../../../../src/server/api/messages/json-text.ts'
import { findUnstorableFields } from '../../../../src/server/api/messages/storable.ts'
import { valueFrom } from '../../../../src/server/api/messages/struct.ts'
import { findTextProblems } from '../../../../src/server/api/services/values.convert.ts'

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
    expect(() => assertFewFields(CreateIntegrationRequestSchema, request(20_000))).not.toThrow()
    expect(() => assertFewFields(CreateIntegrationRequestSchema, request(60_000))).toThrow(tooLarge)
  })

  it('is read from a field with JSON text, and a finding with more', () => {
    expect(findTextProblems('values_json', `{"a":${listOf(1_000)}}`)).toEqual([])
    expect(findTextProblems('values_json', `{"a":${listOf(JSON_VALUES_MAX)}}`)).toEqual([
      { field: 'values_json', description: 'must have at most 50000 values', rule: 'json_text' },
    ])
  })
})

it('an answer in protobuf encoding has as many values, together, and no more', () => {
  const page = (...records: number[]): MessageInitShape<typeof ListPagesResponseSchema> => {
    const lists = records.map((count) => valueFrom(Array.from({ length: count - 1 }, () => 1)))
    return { step: { case: 'page', value: { number: 1, stopReason: 'empty', records: lists } } }
  }
  expect(() => toEncodable(ListPagesResponseSchema, page(JSON_VALUES_MAX - 7, 7))).not.toThrow()
  expect(() => toEncodable(ListPagesResponseSchema, page(JSON_VALUES_MAX - 7, 8))).toThrow(
    expect.objectContaining({ reason: 'ANSWER_TOO_LARGE' }),
  )
})

it('at most 100 values that cannot be stored are told', () => {
  const bad = Array.from({ length: 1_000 }, () => ({ ['__proto__']: 1, a: '\u0000', b: Number.NaN }))
  expect(findUnstorable(bad, 'a')).toHaveLength(100)
  const message = create(CreateIntegrationRequestSchema, { config: { bad } as never })
  expect(findUnstorableFields(CreateIntegrationRequestSchema, message)).toHaveLength(100)
})
