import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { isJsonObject, type Json } from '../../base/index.ts'
import { fieldNamed, isPlainMessage } from '../message/shape.ts'

/** A JSON object under construction. */
export type JsonDraft = Record<string, Json>

/** The field at the end of a path through nested messages, in either spelling; absent when a step leads nowhere. */
export function parameterAt(desc: DescMessage, path: readonly string[]): DescField | undefined {
  const [name = '', ...inner] = path
  const field = fieldNamed(desc, name)
  if (field === undefined || inner.length === 0) return field
  return field.fieldKind === 'message' && isPlainMessage(field.message) ? parameterAt(field.message, inner) : undefined
}

/** Tells whether the field can be written as text in a path or a query. */
export function isTextual(field: DescField): boolean {
  return (
    field.fieldKind !== 'map' && (field.message === undefined || !isPlainMessage(field.message)) && !isFreeForm(field)
  )
}

function isFreeForm({ message }: DescField): boolean {
  return message !== undefined && /\.(Struct|ListValue|Any|Empty)$/.test(message.typeName)
}

/**
 * The JSON that a text of the path or query stands for. Text that does not fit stays text, so that it is refused like
 * any other value of the wrong type.
 */
export function jsonOfText(field: DescField, text: string): Json {
  if (field.scalar === ScalarType.BOOL) return text === 'true' ? true : text === 'false' ? false : text
  if (field.message?.typeName !== 'google.protobuf.FieldMask') return text
  return text.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** Puts a value at a path of field names, adding the objects in between. */
export function setAt(target: JsonDraft, path: readonly string[], value: Json): void {
  const [name = '', ...inner] = path
  if (inner.length === 0) {
    target[name] = value
    return
  }
  const below = target[name]
  const child: JsonDraft = isJsonObject(below) ? { ...below } : {}
  setAt(child, inner, value)
  target[name] = child
}
