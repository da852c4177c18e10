import { create, type DescField, type DescMessage, fromJson, toBinary } from '@bufbuild/protobuf'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { ListValueSchema, StructSchema, ValueSchema } from '@bufbuild/protobuf/wkt'
import {
  chunkJson,
  exceedsJsonSize,
  isJsonObject,
  type Json,
  type JsonObject,
  toDoubles,
  yieldToEventLoop,
} from '../../base/index.ts'
import type { ResultInit } from '../operation.ts'
import { freeFormFields, freeFormItems, isFreeFormValue, withoutFields } from './free-form.ts'

/**
 * Tells whether a message in protobuf encoding has more than `fieldsMax` fields, nested ones included. Stops at the first one too
 * many: decoding takes microseconds per field.
 *
 * @throws Error when the bytes are no message
 */
export function hasMoreFields(desc: DescMessage, bytes: Uint8Array, fieldsMax: number): boolean {
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

/** Characters of JSON that are encoded without a break: up to 10 ms, since protobuf makes a message of every value. */
const PART_LENGTH = 16 * 1024

/** Largest free-form field, in characters of JSON, of a message that is encoded without a break. */
const DIRECT_LENGTH_MAX = 64 * 1024

/** Parts of an encoding that are collected before they are joined. */
const PARTS_MAX = 1_024

/** Field numbers of `google.protobuf.Value`, of `Struct` and `ListValue`, and of the entry of a map. */
const VALUE_STRING = 3
const VALUE_STRUCT = 5
const VALUE_LIST = 6
const ENTRIES = 1
const ENTRY_KEY = 1
const ENTRY_VALUE = 2

/** Encodes in steps, between which other requests run; returns the parts of the encoding. */
type Encoding = Generator<void, readonly Uint8Array[]>

/** Tells whether a message has free-form values that are too large to encode without a break. */
export function holdsLargeJson(desc: DescMessage, init: ResultInit): boolean {
  return freeFormFields(desc).some(({ field, inner }) => {
    const items = freeFormItems(init, field)
    if (inner === undefined) return exceedsJsonSize(items as readonly Json[], DIRECT_LENGTH_MAX)
    return items.some((item) => holdsLargeJson(inner, item as ResultInit))
  })
}

/** `encodeBinary` without holding the event loop: large free-form values are encoded in parts. */
export async function encodeBinaryInSlices(desc: DescMessage, init: ResultInit): Promise<Uint8Array> {
  const encoding = encodeMessage(desc, init)
  for (;;) {
    const step = encoding.next()
    if (step.done === true) return Buffer.concat(step.value)
    await yieldToEventLoop()
  }
}

/** Encodes free-form fields after all others: the order of fields has no meaning. */
function* encodeMessage(desc: DescMessage, init: ResultInit): Encoding {
  const fields = freeFormFields(desc).filter(({ field }) => field.fieldKind !== 'map')
  const joined: Uint8Array[] = [toBinary(desc, create(desc, withoutFields(fields, init)))]
  let parts: Uint8Array[] = []
  for (const { field, inner } of fields)
    for (const item of freeFormItems(init, field)) {
      const encoded = inner === undefined ? encodeItem(field, item as Json) : encodeMessage(inner, item as ResultInit)
      parts.push(...delimited(field.number, yield* encoded))
      if (parts.length < PARTS_MAX) continue
      joined.push(Buffer.concat(parts))
      parts = []
      yield
    }
  return [...joined, ...parts]
}

function* encodeItem(field: DescField, json: Json): Encoding {
  if (isFreeFormValue(field)) return yield* encodeValue(json)
  return isJsonObject(json) ? yield* encodeEntries(json) : []
}

function* encodeValue(json: Json): Encoding {
  // Copied once here, several times through a message.
  if (typeof json === 'string' && json.length > PART_LENGTH) {
    yield
    return delimited(VALUE_STRING, [Buffer.from(json)])
  }
  const isDivided = (Array.isArray(json) || isJsonObject(json)) && exceedsJsonSize(json, PART_LENGTH)
  if (!isDivided) return [toBinary(ValueSchema, fromJson(ValueSchema, toDoubles(json) as never))]
  return delimited(Array.isArray(json) ? VALUE_LIST : VALUE_STRUCT, yield* encodeEntries(json))
}

/** The content of a `ListValue` or a `Struct`: the concatenation of the encodings of its parts. */
function* encodeEntries(value: readonly Json[] | JsonObject): Encoding {
  const isList = Array.isArray(value)
  const schema = isList ? ListValueSchema : StructSchema
  const parts: Uint8Array[] = []
  for (const part of chunkJson(value, PART_LENGTH)) {
    if (part.kind === 'entries')
      parts.push(toBinary<DescMessage>(schema, fromJson<DescMessage>(schema, toDoubles(part.value as Json) as never)))
    else {
      const inner = yield* encodeValue(part.value)
      const key = Buffer.from(part.key)
      const entry = isList ? inner : [...delimited(ENTRY_KEY, [key]), ...delimited(ENTRY_VALUE, inner)]
      parts.push(...delimited(ENTRIES, entry))
    }
    yield
  }
  return parts
}

/** A field of bytes: tag, length, content. */
function delimited(field: number, content: readonly Uint8Array[]): Uint8Array[] {
  const length = content.reduce((sum, part) => sum + part.length, 0)
  const head = new BinaryWriter().tag(field, WireType.LengthDelimited).uint32(length).finish()
  return [head, ...content]
}
