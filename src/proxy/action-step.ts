import { Failure, isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import type { ContextSource, StepPlan } from '../definitions/index.ts'
import { renderJson, type TemplateScope } from '../expressions/index.ts'
import { isTruthy } from '../formats/index.ts'
import { singleOutcome } from './call.ts'
import type { CallContext } from './call-context.ts'
import type { CallDependencies } from './dependencies.ts'
import type { ActionRequest, CallOutcome, SuccessOutcome } from './outcome.ts'
import type { AccountAccess } from './request.ts'
import { sendWithRetries } from './send.ts'
import { evaluateSetting } from './setting-expression.ts'

/** What the steps of a running action see. */
export interface ActionState {
  /** With the context as the steps before have changed it, and the newest credentials. */
  readonly access: AccountAccess
  /** Absent before the first step. */
  readonly previous: Json | undefined
  /** Results by step name. */
  readonly steps: JsonObject
  /** What the steps before have changed of the context. */
  readonly patch: JsonObject
}

/** What a step that ran came to. */
export interface StepOutcome {
  readonly outcome: CallOutcome
  /** The credentials may have been renewed. */
  readonly access: AccountAccess
  /** Context keys to set; null removes one. */
  readonly patch: JsonObject
}

/** Decoded bytes of the answer to one step: all results are kept until the action ends. */
const RESPONSE_BYTES_MAX = 4 * 1024 * 1024

const NO_CHANGES: JsonObject = {}

/** Tells whether a step is to run. @throws Failure EXPRESSION_FAILED */
export async function shouldRunStep(
  deps: CallDependencies,
  { runIf }: StepPlan,
  request: ActionRequest,
  running: ActionState,
): Promise<boolean> {
  return runIf === undefined || isTruthy(await evaluateForStep(deps, 'run_if', runIf, request, running))
}

/** Runs one step. @throws Failure of a call, EXPRESSION_FAILED, DEFINITION_INVALID for a form */
export async function runStep(
  deps: CallDependencies,
  step: StepPlan,
  request: ActionRequest,
  running: ActionState,
): Promise<StepOutcome> {
  const { access } = running
  switch (step.type) {
    case 'request':
      return await runRequestStep(deps, { method: step.request, path: '' }, request, running)
    case 'transform': {
      const value = await evaluateForStep(deps, 'transform', step.expression, request, running)
      return { outcome: computedOutcome(value ?? null), access, patch: NO_CHANGES }
    }
    case 'update_context': {
      const patch = await evaluateContextPatch(deps, step.patch, request, running)
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
  running: ActionState,
): Promise<StepOutcome> {
  const limits = { responseBytesMax: RESPONSE_BYTES_MAX, ...request.limits }
  const stepRequest = { ...request, headers: undefined, page: undefined, limits, action: running }
  const job: CallContext = { target, request: stepRequest, access: running.access }
  const answer = await sendWithRetries(deps, job)
  return { outcome: await singleOutcome(deps, job, answer), access: job.access, patch: NO_CHANGES }
}

/** @throws Failure EXPRESSION_FAILED when there is something to merge and it is no object */
async function evaluateContextPatch(
  deps: CallDependencies,
  source: ContextSource,
  request: ActionRequest,
  running: ActionState,
): Promise<JsonObject> {
  const value = await evaluateContextSource(deps, source, request, running)
  if (value === undefined || value === null) return NO_CHANGES
  if (isJsonObject(value)) return value
  throw new Failure('EXPRESSION_FAILED', 'update_context: there is no object of context keys to merge')
}

async function evaluateContextSource(
  deps: CallDependencies,
  source: ContextSource,
  request: ActionRequest,
  running: ActionState,
): Promise<Json | undefined> {
  switch (source.kind) {
    case 'previous':
      return running.previous
    case 'expression':
      return await evaluateForStep(deps, 'update_context', source.text, request, running)
    case 'template': {
      const scope: TemplateScope = { account: running.access, call: { ...request, action: running } }
      return renderJson(source.template, scope)
    }
  }
}

/** Expressions see the account's context and what the caller gave, never credentials or variables of the environment. */
function evaluateForStep(
  { evaluator }: CallDependencies,
  setting: string,
  expression: string,
  { args = {}, query = {}, body = null, id = null }: ActionRequest,
  { access, previous, steps }: ActionState,
): Promise<Json | undefined> {
  const roots = { context: access.context, args, query, body, id }
  return evaluateSetting(
    evaluator,
    setting,
    expression,
    roots,
    previous === undefined ? { steps } : { previous, steps },
  )
}

/** The outcome of a step that asks nobody. */
export function computedOutcome(result: Json): SuccessOutcome {
  return { kind: 'ok', status: 200, headers: {}, body: result, result, page: undefined, rateLimit: undefined }
}
