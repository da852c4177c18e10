import type { DescField, DescMessage } from '@bufbuild/protobuf'
import { suggest, type Violation } from '../../base/index.ts'
import { isPlainMessage } from '../messages/json-shape.ts'

/** A model repairs a few fields at a time. */
const VIOLATIONS_MAX = 20
const NAME_LENGTH_MAX = 100
/** Messages whose JSON has any names. */
const FREE_FORM: ReadonlySet<string> = new Set([
  'google.protobuf.Struct',
  'google.protobuf.Value',
  'google.protobuf.ListValue',
])

/**
 * Checks the fields of a projection, dotted paths, against the message that they are chosen from. Below a free-form value any name
 * is valid.
 *
 * @param argument the argument that has the fields, named in the violations
 * @returns at most 20 violations
 */
export function checkMessageFields(
  message: DescMessage,
  fields: readonly string[],
  argument: string,
): readonly Violation[] {
  const found = fields.flatMap((field, at): readonly Violation[] => {
    const unknown = findUnknownName(message, field.split('.'))
    if (unknown === undefined) return []
    const description = `${field.slice(0, NAME_LENGTH_MAX)} is not a field of the answer${unknown.hint}`
    return [{ field: `${argument}[${at}]`, description, rule: 'unknown_field' }]
  })
  return found.slice(0, VIOLATIONS_MAX)
}

/** What is wrong with a path, if anything: the names to suggest are those beside the unknown one. */
function findUnknownName(message: DescMessage, path: readonly string[]): { readonly hint: string } | undefined {
  const [name, ...rest] = path
  if (name === undefined || FREE_FORM.has(message.typeName)) return undefined
  if (!isPlainMessage(message)) return { hint: '' }
  const field = message.fields.find((each) => each.name === name)
  if (field === undefined) {
    const names = message.fields.map((each) => each.name)
    return { hint: suggest(name.slice(0, NAME_LENGTH_MAX), names) }
  }
  const within = field.fieldKind === 'map' ? rest.slice(1) : rest
  const inner = messageOf(field)
  if (inner !== undefined) return findUnknownName(inner, within)
  return within.length === 0 ? undefined : { hint: '' }
}

function messageOf(field: DescField): DescMessage | undefined {
  return field.fieldKind === 'scalar' || field.fieldKind === 'enum' ? undefined : field.message
}
