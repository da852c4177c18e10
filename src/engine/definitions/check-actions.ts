import { createSuggester, type suggest, type Violation } from '../../foundation/base/index.ts'
import { type DotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { listVariablePaths } from '../expressions/input-analysis.ts'
import { listPlaceholderPaths } from '../expressions/template.ts'
import { ACTION_RESOURCE, FORM_ACTION, type RESERVED_ACTIONS, stepName } from './actions.ts'
import { resolvedSchema } from './config-schema.ts'
import { type ConfigFinding, toViolations } from './findings.ts'
import { SUBSCRIPTION_VERBS, type SubscriptionVerb } from './plan.ts'
import { listFields } from './schema-walk.ts'

/** The action that refreshes the token. */
const REFRESH_ACTION = 'refresh_token' satisfies (typeof RESERVED_ACTIONS)[number]

/** One step of an action as it is written, with its default name. */
interface StepAt {
  readonly name: string
  readonly step: JsonObject
  readonly path: DotPath
}

/**
 * Semantic problems of actions: duplicate names, results read before they exist or outside of any action, steps where they
 * cannot run.
 *
 * @param path prefix of the reported fields: `config`, `override`
 */
export function findActionProblems(config: JsonObject, path: string): Violation[] {
  const reads = listResultReads(config)
  const readsByPlace = groupByStep(reads)
  const suggester = createSuggester()
  const found = listActionsAt(config).flatMap(({ action, definition, path: at }) => {
    const steps = stepsOf(definition, at)
    return [
      ...findTakenNames(steps),
      ...findMisplacedSteps(action, steps),
      ...steps.flatMap(findPagination),
      ...findUnknownResults(steps, readsByPlace, suggester),
    ]
  })
  const outside = reads.filter(({ at }) => !isInAction(at)).map(unreadable)
  return toViolations([...findShadowedResource(config), ...found, ...outside], path)
}

function findShadowedResource({ resources }: JsonObject): ConfigFinding[] {
  if (!isJsonObject(resources) || resources[ACTION_RESOURCE] === undefined) return []
  const description = 'is the name under which actions are called: no call would reach this resource'
  return [{ at: ['resources', ACTION_RESOURCE], description, rule: 'resources.reserved_name' }]
}

/** An action as it is written. */
interface ActionAt {
  /** Its name; of the requests of a subscription `subscription_` and the verb. */
  readonly action: string
  readonly definition: Json
  readonly path: DotPath
}

/** The named actions, and those of `webhook.subscription`. */
export function listActionsAt({ actions, webhook }: JsonObject): readonly ActionAt[] {
  const named = isJsonObject(actions) ? Object.entries(actions) : []
  const subscription = isJsonObject(webhook) && isJsonObject(webhook.subscription) ? webhook.subscription : {}
  const requests = SUBSCRIPTION_VERBS.flatMap((verb): [SubscriptionVerb, Json][] => {
    const definition = subscription[verb]
    return definition === undefined ? [] : [[verb, definition]]
  })
  return [
    ...named.map(([action, definition]) => ({ action, definition, path: ['actions', action] })),
    ...requests.map(([verb, definition]) => ({
      action: `subscription_${verb}`,
      definition,
      path: ['webhook', 'subscription', verb],
    })),
  ]
}

/** Whether a path is in an action, where the results of its steps can be read. */
function isInAction(at: DotPath): boolean {
  if (at[0] === 'actions') return true
  return at[0] === 'webhook' && at[1] === 'subscription' && SUBSCRIPTION_VERBS.some((verb) => verb === at[2])
}

function stepsOf(definition: Json, path: DotPath): StepAt[] {
  if (!isJsonObject(definition)) return []
  const isList = Array.isArray(definition.steps)
  const steps: readonly Json[] = Array.isArray(definition.steps) ? definition.steps : [definition]
  return steps.flatMap((step, index) => {
    if (!isJsonObject(step)) return []
    const name = stepName(
      { name: typeof step.name === 'string' ? step.name : undefined, type: String(step.type) },
      index,
    )
    return [{ name, step, path: isList ? [...path, 'steps', index] : path }]
  })
}

function findTakenNames(steps: readonly StepAt[]): ConfigFinding[] {
  const taken = new Set<string>()
  return steps.flatMap(({ name, path }) => {
    if (taken.size < taken.add(name).size) return []
    const description = `is the name of an earlier step too: $steps.${name} could be either`
    return [{ at: [...path, 'name'], description, rule: 'actions.duplicate_step' }]
  })
}

function findMisplacedSteps(action: string, steps: readonly StepAt[]): ConfigFinding[] {
  const rule = 'actions.wrong_step'
  const misplaced = steps.flatMap(({ step, path }) => {
    const description = describeMisplaced(action, step.type)
    return description === undefined ? [] : [{ at: [...path, 'type'], description, rule }]
  })
  if (action !== REFRESH_ACTION || steps.some(({ step }) => step.type === 'request')) return misplaced
  return [...misplaced, { at: ['actions', action], description: 'must have a step that sends a request', rule }]
}

/** Forms belong to one action. In `refresh_token` the context is updated by `context_from_token`. */
function describeMisplaced(action: string, type: Json | undefined): string | undefined {
  if (action === FORM_ACTION) return type === 'form' ? undefined : `must be form in ${FORM_ACTION}`
  if (type === 'form') return `is possible in ${FORM_ACTION} only`
  if (action === REFRESH_ACTION && type === 'update_context') return `has no effect in ${REFRESH_ACTION}`
  return undefined
}

function findPagination({ step: { type, config }, path }: StepAt): ConfigFinding[] {
  if (type !== 'request' || !isJsonObject(config) || !isJsonObject(config.pagination)) return []
  const description = 'is not possible: a step sends one request; write a method of a resource for a list'
  return [{ at: [...path, 'config', 'pagination'], description, rule: 'actions.pagination' }]
}

/** A reference to a result in a template or an expression: `$previous`, or `$steps` and a name. */
interface ResultRead {
  readonly kind: 'template' | 'expression'
  readonly root: 'previous' | 'steps'
  readonly step: string | undefined
  readonly at: DotPath
}

/**
 * References by the path of their step as JSON: `["actions", name]` or `["webhook", "subscription", verb]`, and with
 * `"steps", index` behind it.
 */
function groupByStep(reads: readonly ResultRead[]): ReadonlyMap<string, readonly ResultRead[]> {
  const groups = new Map<string, ResultRead[]>()
  for (const read of reads)
    for (const length of [2, 3, 4, 5]) {
      const place = JSON.stringify(read.at.slice(0, length))
      const group = groups.get(place)
      if (group === undefined) groups.set(place, [read])
      else group.push(read)
    }
  return groups
}

function findUnknownResults(
  steps: readonly StepAt[],
  readsByPlace: ReadonlyMap<string, readonly ResultRead[]>,
  suggester: typeof suggest,
): ConfigFinding[] {
  const names = new Set<string>()
  return steps.flatMap((step) => {
    const reads = readsByPlace.get(JSON.stringify(step.path)) ?? []
    const findings = reads.flatMap((read) => findUnknownResult(read, step, names, suggester))
    names.add(step.name)
    return findings
  })
}

/** @param names of the previous steps */
function findUnknownResult(
  read: ResultRead,
  { step, path }: StepAt,
  names: ReadonlySet<string>,
  suggester: typeof suggest,
): ConfigFinding[] {
  const { kind, root, step: name, at } = read
  // Expressions that classify a response (error_expression for example) see the response alone.
  if (kind === 'expression' && step.type === 'request' && at[path.length] === 'config') return [unreadable(read)]
  if (root === 'previous' && names.size === 0)
    return [{ at, description: 'reads $previous, but this is the first step', rule: 'actions.unknown_step' }]
  if (root === 'previous' || name === undefined || names.has(name)) return []
  const description = `reads $steps.${name}, but no step of that name runs before${suggester(name, names)}`
  return [{ at, description, rule: 'actions.unknown_step' }]
}

function unreadable({ root, at }: ResultRead): ConfigFinding {
  const description = `reads $${root}, which is there in templates, transform, update_context and run_if of actions only`
  return { at, description, rule: 'actions.result_outside' }
}

function listResultReads(config: JsonObject): ResultRead[] {
  return listFields(resolvedSchema, config).flatMap(({ role, value, path: at }) => {
    switch (role.kind) {
      case 'template':
      case 'url':
        return templateReads(value, at)
      case 'expression':
        return typeof value === 'string' ? expressionReads(value, at) : []
      default:
        return []
    }
  })
}

function templateReads(value: Json, at: DotPath): ResultRead[] {
  return listPlaceholderPaths(value).flatMap(({ root, steps: [step] }): ResultRead[] => {
    if (root === '$previous') return [{ kind: 'template', root: 'previous', step: undefined, at }]
    if (root !== '$steps') return []
    return [{ kind: 'template', root: 'steps', step: step === undefined ? undefined : String(step), at }]
  })
}

function expressionReads(text: string, at: DotPath): ResultRead[] {
  return listVariablePaths(text).flatMap(({ variable, step }) =>
    variable === 'previous' || variable === 'steps' ? [{ kind: 'expression', root: variable, step, at }] : [],
  )
}
