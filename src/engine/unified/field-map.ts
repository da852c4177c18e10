import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { ValueColumn } from '../expressions/evaluator.ts'
import {
  compileMappingExpression,
  type Evaluation,
  evaluateColumns,
  type MappingExpression,
  ofSetting,
} from './mapping-expression.ts'
import type { FieldMap } from './mapping-schema.ts'

/** A compiled field map. */
export interface FieldMapPlan {
  readonly tree: FieldTree
  readonly leaves: readonly FieldLeaf[]
}

/** An expression of a field map. */
interface FieldLeaf extends MappingExpression {
  /** Dotted path in the field map; empty: the expression is the whole. */
  readonly field: string
}

export type FieldTree =
  | { readonly kind: 'leaf'; readonly at: number; readonly readsRoot: boolean }
  | { readonly kind: 'constant'; readonly value: Json; readonly readsRoot: false }
  | {
      readonly kind: 'object'
      readonly entries: readonly (readonly [string, FieldTree])[]
      readonly readsRoot: boolean
    }
  | { readonly kind: 'list'; readonly items: readonly FieldTree[]; readonly readsRoot: boolean }

/** Compiles a field map. */
export function compileFieldMap(map: FieldMap): FieldMapPlan {
  const leaves: FieldLeaf[] = []
  return { tree: compileTree(map, '', leaves), leaves }
}

function compileTree(value: Json, field: string, leaves: FieldLeaf[]): FieldTree {
  if (typeof value === 'string') {
    const leaf = compileMappingExpression(value)
    leaves.push({ ...leaf, field })
    return { kind: 'leaf', at: leaves.length - 1, readsRoot: leaf.readsRoot }
  }
  if (Array.isArray(value)) {
    const items = value.map((item: Json, index) => compileTree(item, `${field}[${index}]`, leaves))
    return { kind: 'list', items, readsRoot: items.some(({ readsRoot }) => readsRoot) }
  }
  if (!isJsonObject(value)) return { kind: 'constant', value, readsRoot: false }
  const entries = Object.entries(value).map(
    ([key, item]) => [key, compileTree(item, field === '' ? key : `${field}.${key}`, leaves)] as const,
  )
  return { kind: 'object', entries, readsRoot: entries.some(([, { readsRoot }]) => readsRoot) }
}

/**
 * The value of a field map for one input. A nested object or entry of a list in which no expression found anything in the
 * input is left out, also when it has constants.
 *
 * @param row of the columns of its leaves
 */
export function buildValue(tree: FieldTree, columns: readonly ValueColumn[], row: number): Json | undefined {
  switch (tree.kind) {
    case 'leaf':
      return columns[tree.at]?.values[row]
    case 'constant':
      return tree.value
    case 'object':
      return buildObject(tree.entries, tree.readsRoot, columns, row)
    case 'list':
      return buildList(tree, columns, row)
  }
}

/**
 * The values of the entries of an object of a field map for one input, in their order: all `undefined` when no expression found
 * anything in the input.
 *
 * @param values is overwritten
 */
export function buildEntries(
  { entries, readsRoot }: Extract<FieldTree, { kind: 'object' }>,
  columns: readonly ValueColumn[],
  row: number,
  values: (Json | undefined)[],
): void {
  let hasFound = !readsRoot
  for (let at = 0; at < entries.length; at++) {
    const [, child] = entries[at] as (typeof entries)[number]
    const value = child.kind === 'leaf' ? columns[child.at]?.values[row] : buildValue(child, columns, row)
    values[at] = value
    if (value !== undefined && child.readsRoot) hasFound = true
  }
  if (!hasFound) values.fill(undefined)
}

function buildObject(
  entries: readonly (readonly [string, FieldTree])[],
  readsRoot: boolean,
  columns: readonly ValueColumn[],
  row: number,
): JsonObject | undefined {
  const object: Record<string, Json> = {}
  let hasFound = !readsRoot
  for (const [key, child] of entries) {
    const value = buildValue(child, columns, row)
    if (value === undefined) continue
    object[key] = value
    if (child.readsRoot) hasFound = true
  }
  return hasFound ? object : undefined
}

function buildList(
  { items, readsRoot }: Extract<FieldTree, { kind: 'list' }>,
  columns: readonly ValueColumn[],
  row: number,
): Json | undefined {
  const list: Json[] = []
  let hasFound = !readsRoot
  for (const item of items) {
    const value = buildValue(item, columns, row)
    if (value === undefined) continue
    list.push(value)
    if (item.readsRoot) hasFound = true
  }
  return hasFound ? list : undefined
}

/**
 * The value of a field map for one input; `undefined` when its expression has none. An object is there also when only
 * variables gave it values, such as filters.
 *
 * @param setting names it in a failure
 * @throws Failure EXPRESSION_FAILED and the other reasons of the evaluator
 */
export async function evaluateFieldMap(
  evaluation: Evaluation,
  { tree, leaves }: FieldMapPlan,
  input: JsonObject,
  setting: string,
): Promise<Json | undefined> {
  const columns = await evaluateColumns(evaluation, leaves, [input])
  for (const [at, column] of columns.entries()) {
    const failure = column.failures.get(0)
    const field = leaves[at]?.field ?? ''
    if (failure !== undefined) throw ofSetting(failure, field === '' ? setting : `${setting}.${field}`)
  }
  return tree.kind === 'object' ? buildObject(tree.entries, false, columns, 0) : buildValue(tree, columns, 0)
}
