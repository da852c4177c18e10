import {
  ACTION_RESOURCE,
  isForOneRecord,
  listTools,
  type MethodPlan,
  methodKind,
  type Plan,
  pagingKeys,
  RESERVED_ACTIONS,
  requiredParameters,
  type Tool,
} from '../../engine/definitions/index.ts'
import { listPlaceholderPaths } from '../../engine/expressions/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { accountControl, DRY_RUN_CONTROL, FIELDS_CONTROL, LIST_CONTROLS } from './tool-controls.ts'
import { buildToolInput, type ControlArgument } from './tool-input.ts'
import { singularNoun } from './tool-name.ts'
import type { ToolDraft } from './unnamed-tool.ts'

/** A definition with the accounts that a tool server calls through it. */
export interface ToolIntegration {
  readonly integrationName: string
  readonly label: string
  /** The effective definition. Only descriptions, schemas, paths and paging are read of it. */
  readonly config: JsonObject
  readonly plan: Pick<Plan, 'resources' | 'actions'>
  readonly accountIds: readonly string[]
}

/** Roots of placeholders that the caller fills; all others are filled from the account. */
const CALLER_ROOTS: ReadonlySet<string> = new Set(['id', 'query', 'body', 'args'])
const HOW_TO_CONTINUE =
  'Returns one page of records; pass next_cursor as cursor, with the same arguments, for the next page.'

/** The tools of the described methods of a definition, by resource and method. */
export function proxyTools(integration: ToolIntegration, prefix: string | undefined): readonly ToolDraft[] {
  const { config, plan } = integration
  return listTools(config, { methods: [], tags: [] }).flatMap((tool) => {
    const method = plan.resources.get(tool.resource)?.get(tool.method)
    return method === undefined ? [] : [methodTool(integration, prefix, tool, method)]
  })
}

/** Methods without a description, as `method_resource`: they are no tools. */
export function undescribedMethods({ config }: Pick<ToolIntegration, 'config'>): readonly string[] {
  return entriesOf(config.resources).flatMap(([resource, methods]) =>
    entriesOf(methods)
      .filter(([, method]) => isJsonObject(method) && typeof method.description !== 'string')
      .map(([method]) => `${method} of ${resource}`),
  )
}

function methodTool(integration: ToolIntegration, prefix: string | undefined, tool: Tool, plan: MethodPlan): ToolDraft {
  const { resource, method } = tool
  const definition = entryOf(entryOf(integration.config.resources, resource), method)
  const templates = [entryOf(definition, 'query') ?? null, entryOf(definition, 'body') ?? null]
  const used = requiredParameters(templates)
  const required = [...tool.required, ...used.filter((path) => path === 'id')]
  const isPaged = plan.isList && plan.pagination !== undefined
  const input = buildToolInput({
    ...tool,
    required,
    optional: used,
    hidden: hiddenParameters(integration.config, definition, plan),
    noun: singularNoun(resource),
    hasBody:
      WITH_BODY.has(plan.verb) && plan.isWrite && method !== 'delete' && entryOf(definition, 'body') === undefined,
    controls: controlsOf(plan, isPaged, integration),
  })
  return {
    name: {
      method,
      resource,
      prefix,
      isSingular: method !== 'list' && (isForOneRecord(method) || method === UPSERT || required.includes('id')),
    },
    description: tool.description,
    note: isPaged ? HOW_TO_CONTINUE : undefined,
    input,
    source: 'proxy',
    kind: methodKind(method),
    tags: tool.tags,
    verb: plan.verb,
    target: {
      accountIds: integration.accountIds,
      resource,
      method,
      isList: plan.isList,
      isWrite: plan.isWrite,
    },
  }
}

/** A further usual name of a method for one record: it creates or updates. */
const UPSERT = 'upsert'
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

function controlsOf(
  { isWrite, isList }: Pick<MethodPlan, 'isWrite' | 'isList'>,
  isPaged: boolean,
  integration: ToolIntegration,
): readonly ControlArgument[] {
  return [
    ...(isPaged ? LIST_CONTROLS : []),
    ...(isWrite && !isList ? [] : [FIELDS_CONTROL]),
    ...(isWrite ? [DRY_RUN_CONTROL] : []),
    ...accountControl(integration.accountIds, () => integration.label),
  ]
}

/** Parameters that paging sets, and those that the definition fills from the account. */
function hiddenParameters(config: JsonObject, definition: Json | undefined, plan: MethodPlan): ReadonlySet<string> {
  const paging = plan.pagination === undefined ? [] : pagingKeys(entryOf(definition, 'pagination') ?? config.pagination)
  return new Set([
    ...paging.flatMap((key) => [`query.${key}`, `body.${key}`]),
    ...filledKeys(config.query).map((key) => `query.${key}`),
    ...filledKeys(entryOf(definition, 'query')).map((key) => `query.${key}`),
    ...filledKeys(entryOf(definition, 'body')).map((key) => `body.${key}`),
  ])
}

/** Keys of a template whose placeholders the account fills, none the caller. */
function filledKeys(template: Json | undefined): readonly string[] {
  return entriesOf(template)
    .filter(([, value]) => {
      const roots = listPlaceholderPaths(value).map(({ root }) => root)
      return roots.length > 0 && !roots.some((root) => root !== undefined && CALLER_ROOTS.has(root))
    })
    .map(([key]) => key)
}

/** The tools of the described actions of a definition that callers may run. */
export function actionTools(integration: ToolIntegration, prefix: string | undefined): readonly ToolDraft[] {
  return entriesOf(integration.config.actions).flatMap(([action, definition]) => {
    const plan = integration.plan.actions.get(action)
    const isReserved = RESERVED_ACTIONS.some((name) => name === action)
    if (plan === undefined || isReserved || !isJsonObject(definition) || typeof definition.description !== 'string')
      return []
    const argsSchema = isJsonObject(definition.args_schema) ? definition.args_schema : {}
    const required = requiredArguments(definition, argsSchema)
    const controls = controlsOf({ isWrite: plan.isWrite, isList: false }, false, integration)
    const draft: ToolDraft = {
      name: { method: action, resource: '', prefix, isSingular: false },
      description: definition.description,
      note: undefined,
      input: buildToolInput({
        required,
        querySchema: {},
        bodySchema: {},
        argsSchema,
        hidden: new Set(),
        noun: 'record',
        hasBody: false,
        // A dry run shows one request, and an action sends several.
        controls: controls.filter(({ control }) => control !== 'dry_run'),
      }),
      source: 'actions',
      kind: 'custom',
      tags: [],
      verb: plan.isWrite ? 'POST' : 'GET',
      target: {
        accountIds: integration.accountIds,
        resource: ACTION_RESOURCE,
        method: action,
        isList: false,
        isWrite: plan.isWrite,
      },
    }
    return [draft]
  })
}

/** What the steps of an action read of the caller and no schema describes. */
function requiredArguments(action: JsonObject, { properties }: JsonObject): readonly string[] {
  const known = new Set(Object.keys(isJsonObject(properties) ? properties : {}))
  const paths = listPlaceholderPaths(action).filter(({ root }) => root === 'id' || root === 'args')
  const names = paths.map(({ root, steps }) => (root === 'id' ? 'id' : `args.${steps[0] ?? ''}`))
  return [...new Set(names)].filter((name) => name === 'id' || !known.has(name.slice('args.'.length)))
}

function entriesOf(value: Json | undefined): readonly (readonly [string, Json])[] {
  return isJsonObject(value) ? Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)) : []
}

function entryOf(value: Json | undefined, key: string): Json | undefined {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}
