import type { DescField, DescMessage } from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { Failure } from '../../../foundation/base/index.ts'
import { JSON_VALUES_MAX, type Json } from '../../../foundation/json/index.ts'
import type { ResultInit } from '../operation.ts'
import { asDoubles, freeFormFields, freeFormItems, mapFreeForm } from './free-form.ts'
import { countValues, tooManyValues } from './json-text.ts'

/**
 * Rejects a message in protobuf encoding with more than 50 000 fields, nested ones included, before it is decoded: that takes
 * microseconds per field, and cannot be interrupted. Bytes that are no message are left to the decoder.
 *
 * @throws Failure REQUEST_TOO_LARGE
 */
export function assertFewFields(desc: DescMessage, bytes: Uint8Array): void {
  let isMore: boolean
  try {
    isMore = hasMoreFields(desc, bytes, JSON_VALUES_MAX)
  } catch {
    return
  }
  if (isMore) throw tooManyValues()
}

/** Stops at the first field too many. @throws Error when the bytes are no message */
function hasMoreFields(desc: DescMessage, bytes: Uint8Array, fieldsMax: number): boolean {
  let left = fieldsMax
  const count = (inner: DescMessage | undefined, mapValue: DescMessage | undefined, part: Uint8Array): boolean => {
    const reader = new BinaryReader(part)
    while (reader.pos < reader.len) {
      const [number, wireType] = reader.tag()
      left -= 1
      if (left < 0) return true
      const field = inner?.fields.find((each) => each.number === number)
      const message = field === undefined ? valueOfEntry(number, mapValue) : field.message
      const isEntry = field?.fieldKind === 'map'
      if ((message === undefined && !isEntry) || wireType !== WireType.LengthDelimited) reader.skip(wireType, number)
      else if (
        isEntry ? count(undefined, mapValueOf(field), reader.bytes()) : count(message, undefined, reader.bytes())
      )
        return true
    }
    return false
  }
  return count(desc, undefined, bytes)
}

/** An entry of a map is a message whose second field is the value. */
function valueOfEntry(number: number, mapValue: DescMessage | undefined): DescMessage | undefined {
  return number === 2 ? mapValue : undefined
}

function mapValueOf(field: DescField & { readonly fieldKind: 'map' }): DescMessage | undefined {
  return field.mapKind === 'message' ? field.message : undefined
}

/**
 * The result of a handler as protobuf encodes it: numbers of free-form values as the nearest doubles.
 *
 * @throws Failure ANSWER_TOO_LARGE for more than 50 000 free-form values, whose encoding could not be interrupted
 */
export function toEncodable(desc: DescMessage, result: ResultInit): ResultInit {
  const fields = freeFormFields(desc)
  if (fields.length === 0) return result
  if (countFreeForm(desc, result, JSON_VALUES_MAX) > JSON_VALUES_MAX) throw tooManyAnswered()
  return mapFreeForm(fields, result, asDoubles)
}

function countFreeForm(desc: DescMessage, message: object, valuesMax: number): number {
  let count = 0
  for (const { field, inner } of freeFormFields(desc))
    for (const item of freeFormItems(message, field)) {
      const left = valuesMax - count
      if (left < 0) return count
      count += inner === undefined ? countValues(item as Json, left) : countFreeForm(inner, item as object, left)
    }
  return count
}

function tooManyAnswered(): Failure {
  const message =
    `the answer has more than ${JSON_VALUES_MAX} values, which protobuf encoding is not used for: ` +
    'ask for fewer, for JSON text where the operation offers it, or by REST or Connect with JSON'
  return new Failure('ANSWER_TOO_LARGE', message)
}
