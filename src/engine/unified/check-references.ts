import { suggest } from '../../foundation/base/index.ts'
import { isJsonObject, type JsonObject } from '../../foundation/json/index.ts'
import type { CheckedMethod, FindingAt } from './check-fields.ts'
import { listExtraFields } from './extra-fields.ts'
import type { FieldMap, MappingConfig } from './mapping-schema.ts'
import { objectNodeOf, type References, referenceOf } from './references.ts'

/** The fields that expanded references are loaded with: those of the reference and of the resource that it refers to. */
export function checkReferences({ resource, merged }: CheckedMethod, references: References): readonly FindingAt[] {
  const { config, layers } = merged
  const expansions = isJsonObject(config.expand) ? config.expand : {}
  return Object.entries(expansions as NonNullable<MappingConfig['expand']>).flatMap(([field, { fields }]) => {
    const node = objectNodeOf(resource, field)
    if (node === undefined)
      return [errorAt(['expand', field], 'type', 'is no object at the top of the record, and no list of objects')]
    const name = referenceOf(resource, field)
    const known = [
      ...node.properties.keys(),
      ...((name === undefined ? undefined : references.get(name))?.resource.node.properties.keys() ?? []),
    ]
    const extra = listExtraFields(fields, layers, `expand.${field}.fields`)
    return unknownKeys(fields, known)
      .filter((key) => ![...extra.fields].some((each) => each === key || each.startsWith(`${key}.`)))
      .map((key) => {
        const of = name === undefined ? 'the field' : `the reference, or of ${name}`
        return errorAt(
          ['expand', field, 'fields', key],
          'unknown_field',
          `is not a field of ${of}${suggest(key, known)}`,
        )
      })
  })
}

function unknownKeys(fields: FieldMap, known: readonly string[]): readonly string[] {
  const keys = isJsonObject(fields) ? Object.keys(fields as JsonObject) : []
  const isRaw = (key: string) => key.endsWith('_raw') && known.includes(key.slice(0, -'_raw'.length))
  return keys.filter((key) => !known.includes(key) && !isRaw(key))
}

function errorAt(at: readonly string[], rule: string, message: string): FindingAt {
  return { at, rule, severity: 'error', message }
}
