import type { DescField, DescMessage } from '@bufbuild/protobuf'
import { type FieldLevel, NO_FIELDS } from '../../../tools/servers/index.ts'
import { isPlainMessage } from '../messages/json-shape.ts'

/** Messages whose JSON has any names. */
const FREE_FORM: ReadonlySet<string> = new Set([
  'google.protobuf.Struct',
  'google.protobuf.Value',
  'google.protobuf.ListValue',
])

/** The fields of a message that a projection may choose. Below a free-form value, and as key of a map, any name is valid. */
export function fieldsOfMessage(message: DescMessage): FieldLevel {
  if (FREE_FORM.has(message.typeName)) return undefined
  if (!isPlainMessage(message)) return NO_FIELDS
  const fields = new Map(message.fields.map((field) => [field.name, field]))
  return {
    names: [...fields.keys()],
    has: (name) => fields.has(name),
    below: (name) => fieldsBelow(fields.get(name)),
  }
}

function fieldsBelow(field: DescField | undefined): FieldLevel {
  const values = field === undefined || field.message === undefined ? NO_FIELDS : fieldsOfMessage(field.message)
  return field?.fieldKind === 'map' ? { names: [], has: () => true, below: () => values } : values
}
