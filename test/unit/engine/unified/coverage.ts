import { listMappedIntegrations, SHIPPED_MODEL_NAMES } from '../../../../src/engine/catalog/index.ts'
import { listInputPaths } from '../../../../src/engine/expressions/input-analysis.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { markdownTable } from '../../../support/markdown.ts'
import { mappedMethods, methodConfig, modelOf } from './harness.ts'

/** What a mapping does with one resource. */
interface Coverage {
  readonly integration: string
  readonly methods: readonly string[]
  /** Its lists lack fields that `get` returns. */
  readonly isPartial: boolean
  readonly reads: ReadonlySet<string>
  /** Fields that `get` returns, and `list` does not. */
  readonly readsInGet: ReadonlySet<string>
  readonly writes: ReadonlySet<string>
  readonly filters: readonly string[]
  readonly sorts: readonly string[]
  readonly expands: readonly string[]
}

/** Which integrations have which resources, methods and fields of the shipped models: `src/engine/reference/unified-coverage.md`. */
export function coverageDocument(): string {
  return [
    '<!-- Generated from the shipped mappings by `npm run docs`, the chapter of other schemas by `npm run test:schemas`. -->',
    '',
    '# Coverage of the unified models',
    '',
    'What the shipped mappings cover, and [which other public schemas have each field](#fields-beside-other-public-schemas).',
    '',
    '**Methods**: `list*` means that a list lacks fields which `get` returns. **Fields**: `r` is read, `g` is read by `get`',
    'alone, `w` is written by create or update, `f` filters lists, `s` sorts them, `e` can be expanded. The last column counts the',
    'integrations that read the field. What no field has is in `custom_fields`, with the names of the integration.',
    '',
    ...SHIPPED_MODEL_NAMES.flatMap(modelSection),
  ].join('\n')
}

function modelSection(model: string): string[] {
  const { label, resources } = modelOf(model)
  const integrations = listMappedIntegrations(model)
  const covered = [...resources.keys()].map((resource) => [resource, coverageOf(model, resource)] as const)
  const rows = covered.map(([resource, list]) => [
    resource,
    ...integrations.map((name) => methodsCell(list.find(({ integration }) => integration === name))),
  ])
  return [
    `## ${label}`,
    '',
    markdownTable([model, ...integrations], rows),
    '',
    ...covered.flatMap(([resource, list]) => (list.length === 0 ? [] : resourceSection(model, resource, list))),
  ]
}

function methodsCell(coverage: Coverage | undefined): string {
  return coverage?.methods.map((method) => (method === 'list' && coverage.isPartial ? 'list*' : method)).join(' ') ?? ''
}

const COMMON_FIELDS = ['id', 'remote_id', 'custom_fields']

function resourceSection(model: string, resource: string, list: readonly Coverage[]): string[] {
  const fields = Object.keys(modelOf(model).resources.get(resource)?.schema.properties ?? {})
  const rows = fields
    .filter((field) => !COMMON_FIELDS.includes(field))
    .map((field) => {
      const readers = list.filter(({ reads, readsInGet }) => reads.has(field) || readsInGet.has(field))
      return [field, ...list.map((coverage) => fieldCell(coverage, field)), `${readers.length} of ${list.length}`]
    })
  return [
    `### ${model}/${resource}`,
    '',
    markdownTable(['field', ...list.map((c) => c.integration), 'present'], rows),
    '',
  ]
}

function fieldCell(coverage: Coverage, field: string): string {
  const marks = [
    coverage.reads.has(field) ? 'r' : coverage.readsInGet.has(field) ? 'g' : '',
    coverage.writes.has(field) ? 'w' : '',
    coverage.filters.includes(field) ? 'f' : '',
    coverage.sorts.includes(field) ? 's' : '',
    coverage.expands.includes(field) ? 'e' : '',
  ]
  return marks.join('')
}

function coverageOf(model: string, resource: string): Coverage[] {
  return listMappedIntegrations(model).flatMap((integration) => {
    const methods = mappedMethods(model, integration).get(resource)
    return methods === undefined ? [] : [coverageOfMapping(model, resource, integration, methods)]
  })
}

function coverageOfMapping(model: string, resource: string, integration: string, methods: readonly string[]): Coverage {
  const configs = new Map(methods.map((name) => [name, methodConfig(model, integration, resource, name)]))
  const readBy = (method: string): string[] => {
    const { fields = {} } = objectAt(configs.get(method), 'response') as { readonly fields?: JsonObject }
    return typeof fields === 'string' ? [] : Object.keys(fields)
  }
  const reads = new Set(readBy(configs.has('list') ? 'list' : 'get'))
  const bodies = ['create', 'update'].map((method) => objectAt(configs.get(method), 'request').body ?? {})
  const of = (key: string): string[] => [
    ...new Set([...configs.values()].flatMap((config) => Object.keys(objectAt(config, key)))),
  ]
  return {
    integration,
    methods,
    isPartial: objectAt(configs.get('list'), 'response').partial === true,
    reads,
    readsInGet: new Set(readBy('get').filter((field) => !reads.has(field))),
    writes: new Set(bodies.flatMap(fieldsRead)),
    filters: of('filters'),
    sorts: of('sort'),
    expands: of('expand'),
  }
}

function objectAt(config: JsonObject | undefined, key: string): JsonObject {
  return (config?.[key] ?? {}) as JsonObject
}

/** The unified fields that the expressions of a body read. */
function fieldsRead(body: Json): string[] {
  if (typeof body === 'string') return (listInputPaths(body) ?? []).flatMap(([first]) => first ?? [])
  return typeof body === 'object' && body !== null ? Object.values(body as JsonObject).flatMap(fieldsRead) : []
}
