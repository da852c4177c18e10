import { afterAll, describe, expect, test } from 'vitest'
import { Failure, isJsonObject, type Json } from '../../src/base/index.ts'
import { listMappedIntegrations, SHIPPED_MODEL_NAMES } from '../../src/catalog/index.ts'
import { createEvaluator } from '../../src/expressions/index.ts'
import { buildCall, prepareRequest } from '../../src/unified/build-call.ts'
import type { FilterOperator, UnifiedFilter } from '../../src/unified/index.ts'
import { accountOf, definitionPlan, mappedMethods, mappingPlan } from './harness.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

/** Texts between the quotes of a query language. */
const SINGLE_BACKSLASH = /'(?:[^'\\]|\\.)*'/gs
const SINGLE_DOUBLED = /'(?:[^']|'')*'/g
const DOUBLE_BACKSLASH = /"(?:[^"\\]|\\.)*"/gs
/** Of languages that have no escape, or an uncertain one. */
const DOUBLE_PLAIN = /"[^"\\]*"/g
/** A criterion of Zoho: (field:operator:value). */
const CRITERION = /(?<=\(\w+(?:\.\w+)?:\w+:)(?:[^\\(),]|\\.)*(?=\))/gs

/** By integration: where its mappings write a query language, and what a value looks like there. */
const LANGUAGES: Readonly<Record<string, readonly [path: string, value: RegExp]>> = {
  jira: ['query.jql', DOUBLE_BACKSLASH],
  'microsoft-graph': ['query.$filter', SINGLE_DOUBLED],
  netsuite: ['body.q', SINGLE_DOUBLED],
  okta: ['query.search', DOUBLE_BACKSLASH],
  quickbooks: ['query.query', SINGLE_BACKSLASH],
  salesforce: ['query.q', SINGLE_BACKSLASH],
  xero: ['query.where', DOUBLE_PLAIN],
  zendesk: ['query.query', DOUBLE_PLAIN],
  'zoho-crm': ['query.criteria', CRITERION],
}

const HARMLESS = 'abc'
const HOSTILE = ['x\\', 'x" OR 1=1 --', "' or ''='", "x\\' OR Name != '", 'a\nb', 'x) or (a', 'x or y']

const LISTS = SHIPPED_MODEL_NAMES.flatMap((model) =>
  listMappedIntegrations(model).flatMap((integration) =>
    [...mappedMethods(model, integration)].flatMap(([resource, methods]) =>
      methods.includes('list') ? [[model, integration, resource] as const] : [],
    ),
  ),
)

describe.each(LISTS)('filters of %s of %s: %s', (model, integration, resource) => {
  const mapping = mappingPlan(model, integration, resource, 'list')

  /** The leaves of the built request by path, `undefined` when the filters are rejected. */
  async function built(filters: readonly UnifiedFilter[]): Promise<ReadonlyMap<string, Json> | undefined> {
    const target = { mapping, plan: definitionPlan(integration), access: accountOf(integration) }
    try {
      const {
        target: method,
        id,
        query,
        body,
      } = await buildCall({ evaluator }, target, { filters }, prepareRequest(target, { filters }))
      return new Map(leavesOf({ ...method, id: id ?? null, query: query ?? {}, body: body ?? null } as Json, ''))
    } catch (error) {
      if (error instanceof Failure && ['INVALID_FIELD', 'EXPRESSION_FAILED'].includes(error.reason)) return undefined
      throw error
    }
  }

  const filters = [...mapping.filters].flatMap(([field, operators]) =>
    operators.map((op) => [field, op as FilterOperator] as const),
  )

  test.each(filters)('%s %s keeps every value inside its quotes', async (field, op) => {
    for (const prefix of ['', 'vendor:']) {
      const harmless = await built([filterOf(field, op, prefix + HARMLESS)])
      for (const text of HOSTILE) {
        const leaves = await built([filterOf(field, op, prefix + text)])
        if (leaves === undefined) continue
        const what = `${field} ${op} ${JSON.stringify(prefix + text)}`
        expect(shapeOf(integration, leaves, text), what).toEqual(shapeOf(integration, harmless, HARMLESS))
      }
    }
  })

  test('two values stay apart', async () => {
    const texts: UnifiedFilter[] = []
    for (const [field, op] of filters) {
      const filter = filterOf(field, op, HARMLESS)
      if (op === 'eq' && (await built([filter])) !== undefined) texts.push(filter)
    }
    const harmless = await built(texts)
    const hostile = await built(texts.map(({ field, op }) => filterOf(field, op, 'x\\')))
    expect(shapeOf(integration, hostile, 'x\\')).toEqual(shapeOf(integration, harmless, HARMLESS))
  })
})

function filterOf(field: string, op: FilterOperator, text: string): UnifiedFilter {
  return { field, op, value: op === 'in' || op === 'nin' ? [text, 'second'] : text }
}

function leavesOf(value: Json, path: string): (readonly [string, Json])[] {
  const at = (key: string | number) => (path === '' ? String(key) : `${path}.${key}`)
  if (Array.isArray(value)) return value.flatMap((item, index) => leavesOf(item, at(index)))
  if (!isJsonObject(value)) return [[path, value]]
  return Object.entries(value).flatMap(([key, item]) => leavesOf(item, at(key)))
}

/** The request with a mark for each value: of a query language what is outside of its values. */
function shapeOf(integration: string, leaves: ReadonlyMap<string, Json> | undefined, text: string) {
  const [path, value] = LANGUAGES[integration] ?? []
  return Object.fromEntries(
    [...(leaves ?? [])].map(([at, leaf]) => {
      if (typeof leaf !== 'string') return [at, leaf]
      if (at === path && value !== undefined) return [at, leaf.replace(value, '?')]
      return [at, leaf.replaceAll(text, '?')]
    }),
  )
}
