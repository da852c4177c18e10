import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { Plan } from '../definitions/plan.ts'
import { isTruthy } from '../formats/format.ts'
import type { RateLimitedOutcome, UpstreamErrorOutcome } from '../proxy/outcome.ts'
import type { CallTarget, ProxyRequest } from '../proxy/request.ts'
import { compileFieldMap, evaluateFieldMap, type FieldMapPlan } from './field-map.ts'
import {
  compileMappingExpression,
  type Evaluation,
  evaluateMappingExpression,
  type MappingExpression,
} from './mapping-expression.ts'
import type { MappingStep } from './mapping-plan.ts'
import type { FieldMap, StepConfig } from './mapping-schema.ts'
import type { UnifiedDependencies, UnifiedTarget } from './request.ts'

/** Resource of mappings whose methods are actions of the definition. */
const ACTION_RESOURCE = '_'

/**
 * The target of a call of a mapping. A method of another resource is written `<resource>.<method>`: some APIs divide by kind
 * what is one resource of a model, such as customers and vendors.
 */
export function targetOf(resource: string, method: string): Extract<CallTarget, { kind: 'action' | 'method' }> {
  if (resource === ACTION_RESOURCE) return { kind: 'action', action: method }
  const dot = method.indexOf('.')
  return dot === -1
    ? { kind: 'method', resource, method }
    : { kind: 'method', resource: method.slice(0, dot), method: method.slice(dot + 1) }
}

/** Compiles a step. A request without resource or method is a finding of `checkMapping`. */
export function compileStep(step: StepConfig): MappingStep {
  const { name, run_if: runIf, result } = step
  return { name, runIf: optionalExpression(runIf), isResult: result ?? false, work: compileWork(step) }
}

function compileWork(step: StepConfig): MappingStep['work'] {
  if (step.type === 'transform')
    return { type: 'transform', expression: compileMappingExpression(step.expression ?? 'null') }
  return {
    type: 'request',
    target: targetOf(step.resource ?? '', step.method ?? ''),
    id: optionalExpression(step.id),
    query: optionalMap(step.query),
    body: optionalMap(step.body),
  }
}

function optionalExpression(text: string | undefined): MappingExpression | undefined {
  return text === undefined ? undefined : compileMappingExpression(text)
}

function optionalMap(map: FieldMap | undefined): FieldMapPlan | undefined {
  return map === undefined ? undefined : compileFieldMap(map)
}

/** What steps run with. */
export interface StepRun {
  readonly deps: UnifiedDependencies
  readonly target: UnifiedTarget
  readonly evaluation: Evaluation
  /** Root of expressions: the body of a write, else empty. */
  readonly root: JsonObject
  readonly signal: AbortSignal | undefined
  /** `before` or `after`, the variable that holds the results. */
  readonly variable: 'before' | 'after'
  /** A dry run sends nothing: its requests are skipped. */
  readonly isDryRun: boolean
  /** Results of steps that have run already, by name; each step adds its own. */
  readonly results: Record<string, Json>
}

/** Results of steps by name, or the answer of the provider that ends the call. */
export type StepsOutcome =
  | {
      readonly kind: 'done'
      readonly results: JsonObject
      /** Value of the step that replaces the answer of the provider. */
      readonly result: Json | undefined
      /** Names of requests that a dry run skipped. */
      readonly skipped: readonly string[]
    }
  | RateLimitedOutcome
  | UpstreamErrorOutcome

/** Runs steps in their order; each sees the results of those before it. @throws Failure of a call, EXPRESSION_FAILED */
export async function runSteps(run: StepRun, steps: readonly MappingStep[]): Promise<StepsOutcome> {
  const { results } = run
  const skipped: string[] = []
  let result: Json | undefined
  for (const step of steps) {
    if (Object.hasOwn(results, step.name)) {
      if (step.isResult) result = results[step.name]
      continue
    }
    const bindings = { ...run.evaluation.bindings, [run.variable]: { ...results } }
    const evaluation = { ...run.evaluation, bindings }
    if (!(await isRun({ ...run, evaluation }, step))) continue
    if (step.work.type === 'request' && run.isDryRun) {
      skipped.push(step.name)
      continue
    }
    const outcome = await runStep({ ...run, evaluation }, step)
    if (outcome.kind !== 'value') return outcome
    results[step.name] = outcome.value
    if (step.isResult) result = outcome.value
  }
  return { kind: 'done', results, result, skipped }
}

function at({ variable }: StepRun, { name }: MappingStep, key: string): string {
  return `${variable}.${name}.${key}`
}

type StepValue = { readonly kind: 'value'; readonly value: Json } | RateLimitedOutcome | UpstreamErrorOutcome

async function runStep(run: StepRun, step: MappingStep): Promise<StepValue> {
  const { evaluation, root } = run
  const { work } = step
  if (work.type === 'transform') {
    const value = await evaluateMappingExpression(evaluation, work.expression, root, at(run, step, 'expression'))
    return { kind: 'value', value: value ?? null }
  }
  const request = await stepRequest(run, step, work)
  const outcome = await run.deps.proxy.call(run.target.plan, run.target.access, request)
  return outcome.kind === 'ok' ? { kind: 'value', value: outcome.result } : outcome
}

async function stepRequest(
  run: StepRun,
  step: MappingStep,
  { target, id, query, body }: Extract<MappingStep['work'], { type: 'request' }>,
): Promise<ProxyRequest> {
  const { evaluation, root } = run
  return {
    target,
    id: id === undefined ? undefined : await evaluateMappingExpression(evaluation, id, root, at(run, step, 'id')),
    query: asObject(await optionalValue(run, query, at(run, step, 'query'))),
    body: await optionalValue(run, body, at(run, step, 'body')),
    signal: run.signal,
  }
}

/** What the writing requests among steps would send, by name of the step. Nothing is sent. @throws Failure EXPRESSION_FAILED */
export async function stepWrites(run: StepRun, steps: readonly MappingStep[]): Promise<JsonObject> {
  const writes: Record<string, Json> = {}
  for (const step of steps) {
    if (step.work.type !== 'request' || !isWrite(run.target.plan, step.work.target)) continue
    if (!(await isRun(run, step))) continue
    const { id = null, query = {}, body = null } = await stepRequest(run, step, step.work)
    writes[step.name] = { id, query, body }
  }
  return writes
}

/** Whether a call changes something at the provider. */
export function isWrite({ actions, resources }: Plan, target: ProxyRequest['target']): boolean {
  if (target.kind === 'action') return actions.get(target.action)?.isWrite ?? true
  return target.kind !== 'method' || (resources.get(target.resource)?.get(target.method)?.isWrite ?? true)
}

async function isRun(run: StepRun, step: MappingStep): Promise<boolean> {
  if (step.runIf === undefined) return true
  return isTruthy(await evaluateMappingExpression(run.evaluation, step.runIf, run.root, at(run, step, 'run_if')))
}

async function optionalValue(
  { evaluation, root }: StepRun,
  map: FieldMapPlan | undefined,
  setting: string,
): Promise<Json | undefined> {
  return map === undefined ? undefined : await evaluateFieldMap(evaluation, map, root, setting)
}

/** Query parameters: nothing unless the value is an object. */
export function asObject(value: Json | undefined): JsonObject | undefined {
  return value !== undefined && isJsonObject(value) ? value : undefined
}
