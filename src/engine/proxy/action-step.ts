import { Failure } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { ContextSource, StepPlan } from '../definitions/plan.ts'
import type { TemplateScope } from '../expressions/placeholder.ts'
import { renderJson } from '../expressions/template.ts'
import { isTruthy } from '../formats/format.ts'
import { singleOutcome } from './call.ts'
import type { CallContext } from './call-context.ts'
import type { CallDependencies } from './dependencies.ts'
import type { CallOutcome, SuccessOutcome } from './outcome.ts'
import type { AccountAccess, ActionRequest } from './request.ts'
import { sendWithRetries } from './send.ts'
import { evaluateSetting } from './setting-expression.ts'

/** The state that the steps of an action see. */
export interface ActionState {
  /** With the context changes of the steps before, and the newest credentials. */
  readonly access: AccountAccess
  /** Absent before the first step. */
  readonly previous: Json | undefined
  /** Results by step name. */
  readonly steps: JsonObject
  /** Context changes of the steps before. */
  readonly patch: JsonObject
}

/** The outcome of a step, and what it changes. */
export interface StepOutcome {
  readonly outcome: CallOutcome
  /** With refreshed credentials, if the step refreshed them. */
  readonly access: AccountAccess
  /** Context keys to set; null removes one. */
  readonly patch: JsonObject
}

/** Decoded bytes of the response to one step: all results are held in memory until the action ends. */
const RESPONSE_BYTES_MAX = 4 * 1024 * 1024

const NO_CHANGES: JsonObject = {}

/** Whether `run_if` lets the step run. @throws Failure EXPRESSION_FAILED */
export async function shouldRunStep(
  deps: CallDependencies,
  { runIf }: StepPlan,
  request: ActionRequest,
  state: ActionState,
): Promise<boolean> {
  return runIf === undefined || isTruthy(await evaluateForStep(deps, 'run_if', runIf, request, state))
}

/** Runs one step. @throws Failure of a call, EXPRESSION_FAILED, DEFINITION_INVALID for a form */
export async function runStep(
  deps: CallDependencies,
  step: StepPlan,
  request: ActionRequest,
  state: ActionState,
): Promise<StepOutcome> {
  const { access } = state
  switch (step.type) {
    case 'request':
      return await runRequestStep(deps, { method: step.request, path: '' }, request, state)
    case 'transform': {
      const value = await evaluateForStep(deps, 'transform', step.expression, request, state)
      return { outcome: computedOutcome(value ?? null), access, patch: NO_CHANGES }
    }
    case 'update_context': {
      const patch = await evaluateContextPatch(deps, step.patch, request, state)
      return { outcome: computedOutcome(patch), access, patch }
    }
    case 'form':
      throw new Failure('DEFINITION_INVALID', 'a form asks a person: only post_connect_user_form may have one')
  }
}

async function runRequestStep(
  deps: CallDependencies,
  target: CallContext['target'],
  request: ActionRequest,
  state: ActionState,
): Promise<StepOutcome> {
  const limits = { responseBytesMax: RESPONSE_BYTES_MAX, ...request.limits }
  const stepRequest = { ...request, headers: undefined, page: undefined, limits, action: state }
  const context: CallContext = { target, request: stepRequest, access: state.access }
  const response = await sendWithRetries(deps, context)
  return { outcome: await singleOutcome(deps, context, response), access: context.access, patch: NO_CHANGES }
}

/** The context changes of an `update_context` step. @throws Failure EXPRESSION_FAILED when the value is no object */
async function evaluateContextPatch(
  deps: CallDependencies,
  source: ContextSource,
  request: ActionRequest,
  state: ActionState,
): Promise<JsonObject> {
  const value = await evaluateContextSource(deps, source, request, state)
  if (value === undefined || value === null) return NO_CHANGES
  if (isJsonObject(value)) return value
  throw new Failure('EXPRESSION_FAILED', 'update_context: there is no object of context keys to merge')
}

async function evaluateContextSource(
  deps: CallDependencies,
  source: ContextSource,
  request: ActionRequest,
  state: ActionState,
): Promise<Json | undefined> {
  switch (source.kind) {
    case 'previous':
      return state.previous
    case 'expression':
      return await evaluateForStep(deps, 'update_context', source.text, request, state)
    case 'template': {
      const scope: TemplateScope = { account: state.access, call: { ...request, action: state } }
      return renderJson(source.template, scope)
    }
  }
}

/** Expressions see context, arguments and request of the caller and environment variables, never credentials. */
function evaluateForStep(
  deps: CallDependencies,
  setting: string,
  expression: string,
  { args = {}, query = {}, body = null, id = null }: ActionRequest,
  { access, previous, steps }: ActionState,
): Promise<Json | undefined> {
  const roots = { context: access.context, args, query, body, id }
  return evaluateSetting(deps, setting, expression, roots, previous === undefined ? { steps } : { previous, steps })
}

/** The outcome of a step that sends no request. */
export function computedOutcome(result: Json): SuccessOutcome {
  return { kind: 'ok', status: 200, headers: {}, body: result, result, page: undefined, rateLimit: undefined }
}
