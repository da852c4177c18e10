import { afterAll, describe, expect, test } from 'vitest'
import { listMappedIntegrations, SHIPPED_MODEL_NAMES } from '../../../../src/engine/catalog/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { buildCall } from '../../../../src/engine/unified/build-call.ts'
import type { FilterOperator, UnifiedRequest } from '../../../../src/engine/unified/index.ts'
import { prepareRequest } from '../../../../src/engine/unified/index.ts'
import type { UnifiedFilter } from '../../../../src/engine/unified/mapping.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { someCases } from '../../../support/case-count.ts'
import { CLOCK } from './engine-support.ts'
import { accountOf, definitionPlan, mappedMethods, mappingPlan } from './harness.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

/** Texts between the quotes of a query language. */
const SINGLE_BACKSLASH = /'(?:[^'\\]|\\.)*'/gs
/** Of a language that documents the escape of quotes alone. */
const SINGLE_QUOTE_ESCAPED = /'(?:[^'\\]|\\')*'/g
const SINGLE_DOUBLED = /'(?:[^']|'')*'/g
const DOUBLE_BACKSLASH = /"(?:[^"\\]|\\.)*"/gs
/** Of languages that have no escape, or an uncertain one. */
const DOUBLE_PLAIN = /"[^"\\]*"/g
/** A criterion of Zoho: (field:operator:value). */
const CRITERION = /(?<=\(\w+(?:\.\w+)?:\w+:)(?:[^\\(),]|\\.)*(?=\))/gs

/** By integration: where its mappings write a query language, and what a value looks like there. */
const LANGUAGES: Readonly<Record<string, readonly [paths: string | readonly string[], value: RegExp]>> = {
  'google-workspace': ['query.query', SINGLE_QUOTE_ESCAPED],
  jira: ['query.jql', DOUBLE_BACKSLASH],
  'microsoft-graph': ['query.$filter', SINGLE_DOUBLED],
  netsuite: ['body.q', SINGLE_DOUBLED],
  okta: [['query.search', 'query.filter'], DOUBLE_BACKSLASH],
  quickbooks: ['query.query', SINGLE_BACKSLASH],
  salesforce: ['query.q', SINGLE_BACKSLASH],
  xero: ['query.where', DOUBLE_PLAIN],
  zendesk: ['query.query', DOUBLE_PLAIN],
  'zoho-crm': ['query.criteria', CRITERION],
}

const HARMLESS = 'abc'
const NUMBER = '987654321'
const HOSTILE = ['x\\', 'x" OR 1=1 --', "' or ''='", "x\\' OR Name != '", 'a\nb', 'x) or (a', 'x or y']

/** Names that a context brings into a query language: [mapping, path of the query, context of a name]. */
const CONTEXTS: readonly (readonly [integration: string, path: string, Contexts])[] = [
  ['jira', 'query.jql', { tickets: (name) => ({ projects: [name] }) }],
  [
    'salesforce',
    'query.q',
    {
      accounts: (name) => ({ custom_fields: { Account: [name] } }),
      contacts: (name) => ({ custom_fields: { Contact: [name] } }),
      leads: (name) => ({ custom_fields: { Lead: [name] } }),
      opportunities: (name) => ({ custom_fields: { Opportunity: [name] } }),
      engagements: (name) => ({ custom_fields: { Event: [name] } }),
      notes: (name) => ({ custom_fields: { Note: [name] } }),
      tasks: (name) => ({ custom_fields: { Task: [name] } }),
    },
  ],
]
type Contexts = Readonly<Record<string, (name: string) => JsonObject>>
/** SOQL has no quotes for names: what is left of a name is one word, which Salesforce rejects. */
const NAME_IN_SELECT = /, [^\s,()']* FROM /g

const placesOf = (method: string) =>
  SHIPPED_MODEL_NAMES.flatMap((model) =>
    listMappedIntegrations(model).flatMap((integration) =>
      [...mappedMethods(model, integration)].flatMap(([resource, methods]) =>
        methods.includes(method) ? [[model, integration, resource] as const] : [],
      ),
    ),
  )

/** The leaves of the built request by path, `undefined` when the request is rejected. */
async function leavesOfRequest(
  [model, integration, resource]: readonly [string, string, string],
  method: string,
  request: UnifiedRequest,
  context: JsonObject = {},
): Promise<ReadonlyMap<string, Json> | undefined> {
  const mapping = mappingPlan(model, integration, resource, method)
  const target = { mapping, plan: definitionPlan(integration), access: accountOf(integration, context) }
  try {
    const built = await buildCall({ evaluator }, target, request, prepareRequest({ clock: CLOCK }, target, request))
    const { id = null, query = {}, body = null } = built
    return new Map(leavesOf({ ...built.target, id, query, body } as Json, ''))
  } catch (error) {
    if (error instanceof Failure && ['INVALID_FIELD', 'EXPRESSION_FAILED'].includes(error.reason)) return undefined
    throw error
  }
}

describe.each(someCases(placesOf('list'), 10))('filters of %s of %s: %s', (model, integration, resource) => {
  const mapping = mappingPlan(model, integration, resource, 'list')

  const built = (filters: readonly UnifiedFilter[]) =>
    leavesOfRequest([model, integration, resource], 'list', { filters })

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

test.each(someCases(placesOf('get'), 10))('an id of %s of %s: %s stays one value', async (...place) => {
  const parts = mappingPlan(...place, 'get').request.idParts.get('id') ?? 1
  const idOf = (last: string) => [...Array(parts - 1).fill('vendor'), last].join(':')
  const harmless = await leavesOfRequest(place, 'get', { id: idOf(NUMBER) })
  for (const text of HOSTILE) {
    const leaves = await leavesOfRequest(place, 'get', { id: idOf(text) })
    if (leaves !== undefined) expect(shapeOf(place[1], leaves, text), text).toEqual(shapeOf(place[1], harmless, NUMBER))
  }
})

const NAMED = CONTEXTS.flatMap(([integration, path, contexts]) =>
  Object.entries(contexts).map(([resource, contextOf]) => [integration, resource, path, contextOf] as const),
)

describe.each(NAMED)('context of %s: %s', (integration, resource, path, contextOf) => {
  const place = [integration === 'jira' ? 'ticketing' : 'crm', integration, resource] as const
  const queryWith = async (name: string) => (await leavesOfRequest(place, 'list', {}, contextOf(name)))?.get(path)

  test.each(HOSTILE)('%j stays one name', async (name) => {
    const shape = (query: Json | undefined) =>
      String(query).replace(NAME_IN_SELECT, ', ? FROM ').replace(DOUBLE_BACKSLASH, '?')
    const harmless = await queryWith(HARMLESS)
    expect(harmless).toContain(HARMLESS)
    expect(shape(await queryWith(name))).toBe(shape(harmless))
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
  const [paths, value] = LANGUAGES[integration] ?? []
  return Object.fromEntries(
    [...(leaves ?? [])].map(([at, leaf]) => {
      if (typeof leaf !== 'string') return [at, leaf]
      if (value !== undefined && [paths].flat().includes(at)) return [at, leaf.replace(value, '?')]
      return [at, leaf.replaceAll(text, '?')]
    }),
  )
}
