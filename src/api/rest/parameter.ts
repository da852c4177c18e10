import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { isJsonObject, type Json } from '../../base/index.ts'
import { parseRequestJson } from '../message/json-text.ts'
import { fieldNamed, isPlainMessage } from '../message/shape.ts'

/** A JSON object under construction. */
export type JsonDraft = Record<string, Json>

/**
 * The fields along a path through nested messages, each step in either spelling; absent when a step leads nowhere.
 *
 * @param path at least one name
 */
export function fieldsAt(desc: DescMessage, path: readonly string[]): readonly DescField[] | undefined {
  const [name = '', ...inner] = path
  const field = fieldNamed(desc, name)
  if (field === undefined) return undefined
  if (inner.length === 0) return [field]
  if (field.fieldKind !== 'message' || !isPlainMessage(field.message)) return undefined
  const rest = fieldsAt(field.message, inner)
  return rest && [field, ...rest]
}

/** A path as answers name it: `part.made_at`. */
export function nameOfPath(fields: readonly DescField[]): string {
  return fields.map(({ name }) => name).join('.')
}

/** Free-form messages, whose text in a path or query is JSON. */
const FREE_FORM = /^google\.protobuf\.(?:Struct|Value|ListValue)$/

/** Tells whether the field can be written as text in a path or a query: everything but maps and other messages. */
export function isTextual(field: DescField): boolean {
  if (field.fieldKind === 'map') return false
  return field.message === undefined || !(isPlainMessage(field.message) || field.message.typeName.endsWith('.Any'))
}

/** Tells whether a segment of the path can give the field: one scalar, enum or message written as one text. */
export function isPathVariable(field: DescField | undefined): boolean {
  if (field === undefined || field.fieldKind === 'list' || !isTextual(field)) return false
  return !FREE_FORM.test(field.message?.typeName ?? '')
}

/**
 * The JSON that a text of the path or query stands for. Text that does not fit stays text, so that it is refused like
 * any other value of the wrong type.
 *
 * @returns undefined for a free-form field whose text is not JSON
 */
export function jsonOfText(field: DescField, text: string): Json | undefined {
  const typeName = field.message?.typeName ?? ''
  if (FREE_FORM.test(typeName)) return jsonOrUndefined(text)
  if (field.scalar === ScalarType.BOOL || typeName === 'google.protobuf.BoolValue') return booleanOfText(text)
  // Enums go by name or by number, as in JSON.
  if (field.enum !== undefined && /^-?\d{1,10}$/.test(text)) return Number(text)
  if (typeName !== 'google.protobuf.FieldMask') return text
  return text.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function booleanOfText(text: string): Json {
  return text === 'true' ? true : text === 'false' ? false : text
}

function jsonOrUndefined(text: string): Json | undefined {
  try {
    return text === '' ? undefined : parseRequestJson(Buffer.from(text))
  } catch {
    return undefined
  }
}

/** The value at a path of fields, each in either spelling; undefined when there is none. */
export function valueAt(json: Json | undefined, fields: readonly DescField[]): Json | undefined {
  return fields.reduce<Json | undefined>(
    (value, { name, jsonName }) => (isJsonObject(value) ? (value[name] ?? value[jsonName]) : undefined),
    json,
  )
}

/** Puts a value at a path of fields, adding the objects in between; fields on the way get the contract's spelling. */
export function setAt(target: JsonDraft, fields: readonly DescField[], value: Json): void {
  const [field, ...inner] = fields
  if (field === undefined) return
  const { name, jsonName } = field
  const below = target[name] ?? target[jsonName]
  if (jsonName !== name) delete target[jsonName]
  if (inner.length === 0) {
    target[name] = value
    return
  }
  const child: JsonDraft = isJsonObject(below) ? { ...below } : {}
  setAt(child, inner, value)
  target[name] = child
}
