import { isJsonObject, type Json, type JsonObject, suggest } from '../base/index.ts'
import { fieldsOf } from './check-fields.ts'
import type { CheckedMethod, FindingAt } from './check-findings.ts'
import type { SchemaNode } from './schema-node.ts'

/** Enums whose unified values the schema lacks, those of fields that are not mapped, and fields with values but no enum. */
export function checkEnums({ resource, merged }: CheckedMethod): readonly FindingAt[] {
  const { enums } = merged.config
  if (!isJsonObject(enums)) return []
  return Object.entries(enums).flatMap(([field, settings]) => {
    const allowed = enumAt(resource.node, field.split('.'))
    if (!isJsonObject(settings)) return []
    if (allowed === undefined)
      return [finding(['enums', field], 'enum.unknown_field', 'warning', 'is not a field with values in the schema')]
    return [...unknownValues(field, settings, allowed), ...unusedEnum(field, fieldsOf(merged))]
  })
}

function unknownValues(field: string, settings: JsonObject, allowed: readonly string[]): readonly FindingAt[] {
  const mapped = Object.entries(isJsonObject(settings.map) ? settings.map : {})
  const written = Object.keys(isJsonObject(settings.write) ? settings.write : {})
  const values = [
    ...mapped.map(([key, value]) => [['enums', field, 'map', key], value] as const),
    ...written.map((key) => [['enums', field, 'write', key], key] as const),
    ...(typeof settings.default === 'string' ? [[['enums', field, 'default'], settings.default] as const] : []),
  ]
  return values
    .filter(([, value]) => !allowed.includes(String(value)))
    .map(([at, value]) => {
      const hint = suggest(String(value), allowed)
      return finding(at, 'enum.unknown_value', 'error', `${value} is none of ${allowed.join(', ')}${hint}`)
    })
}

/** An enum of a field at the top that the field map leaves out has no effect on reads. */
function unusedEnum(field: string, fields: Json | undefined): readonly FindingAt[] {
  const [name = ''] = field.split('.')
  if (!isJsonObject(fields) || fields[name] !== undefined) return []
  return [finding(['enums', field], 'enum.unused', 'hint', 'belongs to a field that response.fields does not set')]
}

/** The values that the schema allows at a dotted field; lists are entered without an index. */
function enumAt(node: SchemaNode, steps: readonly string[]): readonly string[] | undefined {
  if (node.kind === 'array') return enumAt(node.items, steps)
  const [step, ...rest] = steps
  if (step === undefined) return node.kind === 'object' ? undefined : node.enum
  const inner = node.kind === 'object' ? node.properties.get(step) : undefined
  return inner === undefined ? undefined : enumAt(inner, rest)
}

function finding(at: FindingAt['at'], rule: string, severity: FindingAt['severity'], message: string): FindingAt {
  return { at, rule, severity, message }
}
