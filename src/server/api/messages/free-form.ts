import { create, type DescField, type DescMessage, fromJson, toJson } from '@bufbuild/protobuf'
import { type Value, ValueSchema } from '@bufbuild/protobuf/wkt'
import { isJsonObject, type Json, JsonNumber, type JsonObject, toDoubles } from '../../../foundation/json/index.ts'

/**
 * A `google.protobuf.Value` that keeps its JSON. JSON protocols write that JSON; the message, whose numbers are doubles, is
 * created only when binary protobuf or a rule reads it.
 */
export class JsonValue implements Value {
  readonly $typeName = 'google.protobuf.Value'
  readonly json: Json
  #kind: Value['kind'] | undefined

  constructor(json: Json) {
    this.json = json
  }

  get kind(): Value['kind'] {
    // protobuf's JSON type is ours without `readonly`, and nothing changes what it holds.
    this.#kind ??= fromJson(ValueSchema, toDoubles(this.json) as never).kind
    return this.#kind
  }
}

/** The JSON of a value. Numbers from binary protobuf have been validated to be finite. */
export function jsonOf(value: Value): Json {
  return value instanceof JsonValue ? value.json : toJson(ValueSchema, value)
}

/**
 * A field with free-form JSON, `google.protobuf.Struct` or `Value`, or with messages that have such fields.
 *
 * protobuf's JSON codec turns every number of these into a double. The functions here remove the JSON before the codec runs and
 * restore it afterwards, so that JSON protocols carry it unchanged.
 */
export interface FreeFormField {
  readonly field: DescField
  /** The message with such fields; absent where the field itself is free-form. */
  readonly inner: DescMessage | undefined
}

type Entries = Record<string, unknown>

const NULL = create(ValueSchema, { kind: { case: 'nullValue', value: 0 } })

const freeFormFieldsByType = new Map<DescMessage, readonly FreeFormField[]>()

/** The free-form fields of a message type, computed once. */
export function freeFormFields(desc: DescMessage): readonly FreeFormField[] {
  const found = freeFormFieldsByType.get(desc)
  if (found !== undefined) return found
  const fields = desc.fields.flatMap((field): FreeFormField[] => {
    if (field.message === undefined) return []
    if (isFreeForm(field.message)) return [{ field, inner: undefined }]
    return holdsFreeForm(field.message, new Set()) ? [{ field, inner: field.message }] : []
  })
  freeFormFieldsByType.set(desc, fields)
  return fields
}

function holdsFreeForm(desc: DescMessage, seen: Set<DescMessage>): boolean {
  if (isFreeForm(desc)) return true
  if (seen.has(desc) || desc.typeName.startsWith('google.protobuf.')) return false
  seen.add(desc)
  return desc.fields.some(({ message }) => message !== undefined && holdsFreeForm(message, seen))
}

function isFreeForm({ typeName }: DescMessage): boolean {
  return typeName === 'google.protobuf.Struct' || typeName === 'google.protobuf.Value'
}

/** A copy of a message, or of its init, with every free-form value changed; the rest is shared. */
export function mapFreeForm<Init extends object>(
  fields: readonly FreeFormField[],
  message: Init,
  change: (value: unknown, field: DescField) => unknown,
): Init {
  if (fields.length === 0) return message
  const copy = { ...message } as Init & Entries
  for (const { field, inner } of fields) {
    const value = fieldValue(message, field)
    if (value === undefined) continue
    const changed = mapItems(field, value, (item) =>
      inner === undefined ? change(item, field) : mapFreeForm(freeFormFields(inner), item as object, change),
    )
    writeField(copy, field, changed)
  }
  return copy
}

/** The values in a field of `freeFormFields`: JSON, or messages that contain such fields. */
export function freeFormItems(message: object, field: DescField): readonly unknown[] {
  const value = fieldValue(message, field)
  if (value === undefined) return []
  const items: readonly unknown[] =
    field.fieldKind === 'list' ? (value as []) : field.fieldKind === 'map' ? Object.values(value as object) : [value]
  return field.message !== undefined && isFreeForm(field.message) ? items.map(jsonOfField) : items
}

/** Placeholder of a free-form value while protobuf writes the message around it. */
export function placeholderOf(_value: unknown, { message }: DescField): unknown {
  return message?.typeName === ValueSchema.typeName ? NULL : {}
}

/** A free-form value with doubles, for binary protobuf. A `JsonValue` converts itself. */
export function asDoubles(value: unknown, { message }: DescField): unknown {
  return message?.typeName === ValueSchema.typeName ? value : toDoubles(value as Json)
}

/** Restores the free-form values of a message in its JSON; changes it in place. */
export function fillJson(fields: readonly FreeFormField[], json: JsonObject, message: object): void {
  for (const { field, inner } of fields) {
    const value = fieldValue(message, field)
    if (value === undefined) continue
    const target = json as Entries
    if (inner === undefined) target[field.name] = mapItems(field, value, jsonOfField)
    else
      eachItem(field, target[field.name], value, (item, from) =>
        fillJson(freeFormFields(inner), item as JsonObject, from as object),
      )
  }
}

/** Restores the free-form values of a JSON object in the message that was read without them; changes it in place. */
export function fillMessage(fields: readonly FreeFormField[], message: object, json: JsonObject): void {
  for (const { field, inner } of fields) {
    const item = json[field.name] ?? json[field.jsonName]
    if (item === undefined || item === null) continue
    if (inner === undefined) {
      const isStruct = field.message?.typeName !== ValueSchema.typeName
      const held = mapItems(field, item, (each) => (isStruct ? each : new JsonValue(each as Json)))
      writeField(message as Entries, field, held)
    } else
      eachItem(field, fieldValue(message, field), item, (target, from) =>
        fillMessage(freeFormFields(inner), target as object, from as JsonObject),
      )
  }
}

/**
 * The JSON of a message as protobuf reads it: without free-form values, and its own numbers as doubles. Values that do not fit
 * stay, so that protobuf rejects them.
 */
export function withoutFreeForm(desc: DescMessage, json: JsonObject): JsonObject {
  const rest: Record<string, Json> = {}
  const fields = fieldsByKey(desc)
  for (const key of Object.keys(json)) {
    const item = json[key] ?? null
    const field = fields.get(key)
    rest[key] = field === undefined ? plain(item, undefined) : withoutItem(field, item)
    // One unknown key is enough for protobuf to reject the message.
    if (field === undefined) break
  }
  return rest
}

function withoutItem(field: DescField, item: Json): Json {
  const { message } = field
  return mapJsonItems(field, item, (each) => {
    if (message === undefined) return plain(each, field)
    if (message.typeName === ValueSchema.typeName) return null
    if (!isJsonObject(each)) return plain(each, field)
    if (isFreeForm(message)) return {}
    return message.typeName.startsWith('google.protobuf.') ? each : withoutFreeForm(message, each)
  })
}

/** Integers of 64 bits as text, which protobuf reads exactly. */
function plain(item: Json, field: DescField | undefined): Json {
  if (!(item instanceof JsonNumber)) return item
  const isWhole = field?.scalar !== undefined && /^-?\d+$/.test(item.text)
  return isWhole && item.text !== '-0' ? item.text : item.valueOf()
}

const byKey = new Map<DescMessage, ReadonlyMap<string, DescField>>()

function fieldsByKey(desc: DescMessage): ReadonlyMap<string, DescField> {
  const found = byKey.get(desc)
  if (found !== undefined) return found
  const fields = new Map(
    desc.fields.flatMap((field) => [[field.name, field] as const, [field.jsonName, field] as const]),
  )
  byKey.set(desc, fields)
  return fields
}

function jsonOfField(value: unknown): Json {
  return isValue(value) ? jsonOf(value) : (value as Json)
}

function isValue(value: unknown): value is Value {
  return typeof value === 'object' && value !== null && '$typeName' in value && value.$typeName === ValueSchema.typeName
}

/** The value of a field, also of a member of a oneof; undefined when it is not set. */
export function fieldValue(message: object, { localName, oneof }: DescField): unknown {
  if (oneof === undefined) return Reflect.get(message, localName)
  const chosen: { readonly case?: string; readonly value?: unknown } | undefined = Reflect.get(message, oneof.localName)
  return chosen?.case === localName ? chosen.value : undefined
}

function writeField(message: Entries, { localName, oneof }: DescField, value: unknown): void {
  if (oneof === undefined) message[localName] = value
  else message[oneof.localName] = { case: localName, value }
}

/** Maps the value of a field, the items of a list or the values of a map. */
function mapItems(field: DescField, value: unknown, change: (item: unknown) => unknown): unknown {
  if (field.fieldKind === 'list') return (value as readonly unknown[]).map(change)
  if (field.fieldKind !== 'map') return change(value)
  return Object.fromEntries(Object.entries(value as object).map(([key, item]) => [key, change(item)]))
}

function mapJsonItems(field: DescField, item: Json, change: (item: Json) => Json): Json {
  if (field.fieldKind === 'list') return Array.isArray(item) ? item.map(change) : plain(item, field)
  if (field.fieldKind !== 'map') return change(item)
  if (!isJsonObject(item)) return plain(item, field)
  return Object.fromEntries(Object.entries(item).map(([key, each]) => [key, change(each)]))
}

function eachItem(
  field: DescField,
  target: unknown,
  from: unknown,
  fill: (target: unknown, from: unknown) => void,
): void {
  if (field.fieldKind !== 'list' && field.fieldKind !== 'map') {
    fill(target, from)
    return
  }
  for (const key of Object.keys(from as object))
    fill(Reflect.get(target as object, key), Reflect.get(from as object, key))
}
