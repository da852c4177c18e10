import { formatDotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { fieldsOf, type MappingFinding } from './check-fields.ts'
import { distinctFindings } from './check-findings.ts'
import { fieldExpressions } from './field-leaves.ts'
import type { MergedMapping } from './mapping.ts'
import type { TriedMapping } from './try-mapping.ts'

/** A method of which fixtures were tried. */
export interface TriedMethod {
  readonly merged: MergedMapping
  readonly tried: readonly TriedMapping[]
}

/** Rules of `_warnings` in the words of the check. */
const RULES: Readonly<Record<string, string>> = { enum: 'enum.not_covered', type: 'field.type' }

/**
 * What records of fixtures show about the mapping of a method: expressions that never have a value, which read a key that the
 * provider does not have, and values that the schema or an enum does not cover. Paths are those of the config.
 */
export function checkFixtures({ merged, tried }: TriedMethod): readonly MappingFinding[] {
  const records = tried.flatMap(({ outcome }) => (outcome?.kind === 'ok' ? recordsOf(outcome.result) : []))
  const traces = tried.flatMap((each) => each.traces ?? [])
  return [
    ...(traces.length === 0 ? [] : withoutValue(merged, traces)),
    ...distinctFindings(records.flatMap(warningsOf)),
  ]
}

function withoutValue(
  merged: MergedMapping,
  traces: readonly NonNullable<TriedMapping['traces']>[number][],
): readonly MappingFinding[] {
  const seen = new Set(
    traces.flatMap((trace) =>
      trace.filter(({ value }) => value !== undefined && value !== null).map(({ field }) => field),
    ),
  )
  return fieldExpressions(fieldsOf(merged))
    .filter(({ path }) => !seen.has(formatDotPath(path)))
    .map(({ path, value }) => ({
      path: formatDotPath(['response', 'fields', ...path]),
      rule: 'fixture.no_value',
      severity: 'warning' as const,
      message: `has no value in any record of the fixture: ${value}`,
    }))
}

function recordsOf(result: Json): readonly JsonObject[] {
  return [result].flat().filter(isJsonObject)
}

function warningsOf(record: JsonObject): readonly MappingFinding[] {
  const { _warnings: warnings } = record
  if (!Array.isArray(warnings)) return []
  return warnings.filter(isJsonObject).map(({ field, rule, message }) => ({
    path: `response.fields.${field}`,
    rule: RULES[String(rule)] ?? `fixture.${rule}`,
    severity: 'warning' as const,
    message: String(message),
  }))
}
