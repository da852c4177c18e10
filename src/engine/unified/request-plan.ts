import { isJsonObject, type Json } from '../../foundation/json/index.ts'
import { listInputPaths, listVariablePaths } from '../expressions/input-analysis.ts'
import { compileEnums } from './enums.ts'
import { compileFieldMap, type FieldMapPlan } from './field-map.ts'
import { compileMappingExpression } from './mapping-expression.ts'
import type { FilterPlan, UnifiedRequestPlan } from './mapping-plan.ts'
import type { FieldMap, FilterConfig, MappingConfig } from './mapping-schema.ts'
import type { UnifiedResource } from './model.ts'
import { compileStep } from './steps.ts'

/** Compiles the request side of a mapping. */
export function compileRequest(config: MappingConfig, resource: UnifiedResource): UnifiedRequestPlan {
  const { method, request } = config
  return {
    resource: config.resource,
    method:
      typeof method === 'string'
        ? method
        : { expression: compileMappingExpression(method.expression), allowed: new Set(method.allowed) },
    id: request?.id === undefined ? undefined : compileMappingExpression(request.id),
    query: optionalMap(request?.query),
    body: optionalMap(request?.body),
    headers: new Map(
      Object.entries(request?.headers ?? {}).map(([name, text]) => [name, compileMappingExpression(text)]),
    ),
    args: optionalMap(request?.args),
    filters: new Map(Object.entries(config.filters ?? {}).map(([field, filter]) => [field, compileFilter(filter)])),
    sorts: new Map(
      Object.entries(config.sort ?? {}).map(([field, sort]) => [
        field,
        { asc: optionalMap(sort.asc), desc: optionalMap(sort.desc) },
      ]),
    ),
    required: request?.required ?? [],
    idParts: new Map(Object.entries(config.id_parts ?? {})),
    enums: compileEnums(resource.node, config.enums ?? {}),
    before: (config.before ?? []).map(compileStep),
    after: (config.after ?? []).map(compileStep),
    readFields: readFieldsOf(config),
  }
}

/** The variable that holds the body as a whole. */
const BODY_VARIABLE = 'body'

/** Fields of the body that the choice of the method, the request and the steps read. */
function readFieldsOf({ method, request, before = [], after = [] }: MappingConfig): ReadonlySet<string> | undefined {
  const { required: _, ...maps } = request ?? {}
  const texts = textsOf([method, maps, before, after] as Json)
  const names = new Set<string>()
  for (const text of texts) {
    const paths = listInputPaths(text)
    const readsBody = listVariablePaths(text).some(({ variable }) => variable === BODY_VARIABLE)
    if (paths === undefined || readsBody) return undefined
    for (const [name] of paths) if (name !== undefined) names.add(name)
  }
  return names
}

/** Every text of a config: names of steps and resources are harmless among the expressions. */
function textsOf(value: Json): string[] {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) || isJsonObject(value) ? Object.values(value).flatMap(textsOf) : []
}

function compileFilter({ ops, to, value, format, required }: FilterConfig): FilterPlan {
  return {
    operators: new Set(ops),
    to,
    value: value === undefined ? undefined : compileMappingExpression(value),
    format,
    isRequired: required ?? false,
  }
}

function optionalMap(map: FieldMap | undefined): FieldMapPlan | undefined {
  return map === undefined ? undefined : compileFieldMap(map)
}
