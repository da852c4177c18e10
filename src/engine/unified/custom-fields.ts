import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { ValueColumn } from '../expressions/evaluator.ts'
import {
  asRoot,
  compileMappingExpression,
  type Evaluation,
  evaluateColumns,
  type MappingExpression,
} from './mapping-expression.ts'
import type { CustomFieldsConfig } from './mapping-schema.ts'
import { toText } from './scalar-values.ts'

/** Compiled custom fields: what the provider's record has beyond the schema. */
export type CustomFieldsPlan =
  | {
      readonly mode: 'rest'
      /** The object whose keys they are; absent: the record. */
      readonly source: MappingExpression | undefined
      readonly isLeftOut: (key: string) => boolean
    }
  | {
      readonly mode: 'list'
      readonly source: MappingExpression
      readonly name: MappingExpression
      readonly value: MappingExpression
    }

/** Most custom fields of one record. */
const FIELDS_MAX = 1_000

/** Compiles custom fields; `undefined` when there are none. @param leaves of the fields: what they read is no custom field */
export function compileCustomFields(
  config: CustomFieldsConfig | undefined,
  leaves: readonly MappingExpression[],
): CustomFieldsPlan | undefined {
  if (config === undefined || config.mode === 'none') return undefined
  const source = config.path === undefined ? undefined : compileMappingExpression(config.path)
  if (config.mode === 'rest') {
    const consumed = consumedKeys(leaves, source)
    const isOmitted = matchKeys(config.omit ?? [])
    const isShown = matchKeys(config.only ?? ['*'])
    const isLeftOut = (key: string) => consumed.has(key) || isOmitted(key) || !isShown(key) || key === '__proto__'
    return { mode: 'rest', source, isLeftOut: remembered(isLeftOut) }
  }
  return {
    mode: 'list',
    source: source ?? compileMappingExpression('value'),
    name: compileMappingExpression(config.name ?? 'name'),
    value: compileMappingExpression(config.value ?? 'value'),
  }
}

/** The keys of the source that expressions read; where the source is computed, every name that they read. */
function consumedKeys(
  leaves: readonly MappingExpression[],
  source: MappingExpression | undefined,
): ReadonlySet<string> {
  const paths = leaves.flatMap((leaf) => leaf.paths ?? [])
  const [prefix, ...more] = source === undefined ? [[]] : (source.paths ?? [])
  if (prefix === undefined || more.length > 0) return new Set(paths.flat())
  return new Set(
    paths.flatMap((path) => {
      const key = prefix.every((name, at) => path[at] === name) ? path[prefix.length] : undefined
      return key === undefined ? [] : [key]
    }),
  )
}

/** Keys by name, or by the start of the name before a `*`. */
function matchKeys(patterns: readonly string[]): (key: string) => boolean {
  const names = new Set(patterns.filter((pattern) => !pattern.endsWith('*')))
  const starts = patterns.flatMap((pattern) => (pattern.endsWith('*') ? [pattern.slice(0, -1)] : []))
  return (key) => names.has(key) || starts.some((start) => key.startsWith(start))
}

/** Keys whose answers are remembered: the records of a list have the same few dozen. */
const KEYS_REMEMBERED_MAX = 1_000

/** The same test, asked once per key. */
function remembered(test: (key: string) => boolean): (key: string) => boolean {
  const answers = new Map<string, boolean>()
  return (key) => {
    const known = answers.get(key)
    if (known !== undefined) return known
    const answer = test(key)
    if (answers.size < KEYS_REMEMBERED_MAX) answers.set(key, answer)
    return answer
  }
}

/** The custom fields of each record, as objects by name. @throws Failure of the sandbox */
export async function readCustomFields(
  evaluation: Evaluation,
  plan: CustomFieldsPlan | undefined,
  records: readonly JsonObject[],
): Promise<readonly JsonObject[] | undefined> {
  if (plan === undefined) return undefined
  const [column] = plan.source === undefined ? [] : await evaluateColumns(evaluation, [plan.source], records)
  const sources = records.map((record, row): Json | undefined => (column === undefined ? record : column.values[row]))
  if (plan.mode === 'rest') return sources.map((source) => restOf(source, plan.isLeftOut))
  return listedFields(evaluation, plan, sources)
}

function restOf(source: Json | undefined, isLeftOut: (key: string) => boolean): JsonObject {
  const rest: Record<string, Json> = {}
  if (source === undefined || !isJsonObject(source)) return rest
  let count = 0
  for (const key in source) {
    if (!Object.hasOwn(source, key) || isLeftOut(key)) continue
    if (count++ === FIELDS_MAX) break
    rest[key] = source[key] ?? null
  }
  return rest
}

async function listedFields(
  evaluation: Evaluation,
  plan: Extract<CustomFieldsPlan, { mode: 'list' }>,
  sources: readonly (Json | undefined)[],
): Promise<readonly JsonObject[]> {
  const lists = sources.map((source) => entriesOf(source).slice(0, FIELDS_MAX))
  const [names, values] = await evaluateColumns(evaluation, [plan.name, plan.value], lists.flat().map(asRoot))
  let row = 0
  return lists.map((entries) => {
    const fields = entries.map(() => fieldAt(names, values, row++))
    return Object.fromEntries(fields.filter((field) => field !== undefined))
  })
}

function fieldAt(
  names: ValueColumn | undefined,
  values: ValueColumn | undefined,
  row: number,
): readonly [string, Json] | undefined {
  const name = toText(names?.values[row] ?? null)
  return name === undefined || name === '' || name === '__proto__' ? undefined : [name, values?.values[row] ?? null]
}

function entriesOf(source: Json | undefined): readonly Json[] {
  if (source === undefined || source === null) return []
  return Array.isArray(source) ? source : [source]
}
