import { Failure, isJsonObject, type Json, type JsonObject } from '../../base/index.ts'
import type { ContextSource, StepPlan } from '../../definition/index.ts'
import { renderJson, type Scope } from '../../expression/index.ts'
import { isTruthy } from '../../formats/index.ts'
import { singleOutcome } from '../call.ts'
import type { CallDependencies } from '../dependencies.ts'
import { evaluateSetting } from '../evaluate-setting.ts'
import type { Job } from '../job.ts'
import type { CallOutcome, SuccessOutcome } from '../outcome.ts'
import { perform } from '../perform.ts'
import type { AccountAccess } from '../request.ts'
import type { ActionRequest } from './action-run.ts'

/** What the steps of a running action see. */
export interface RunningContext {
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
export interface StepEnd {
  readonly outcome: CallOutcome
  /** The credentials may have been renewed. */
  readonly access: AccountAccess
  /** Context keys to set; null removes one. */
  readonly patch: JsonObject
}

/** Decoded bytes of the answer to one step: all results are kept until the action ends. */
const RESPONSE_BYTES_MAX = 4 * 1024 * 1024

const UNCHANGED: JsonObject = {}

/** Tells whether a step is to run. @throws Failure EXPRESSION_FAILED */
export async function isWanted(
  deps: CallDependencies,
  { runIf }: StepPlan,
  request: ActionRequest,
  running: RunningContext,
): Promise<boolean> {
  return runIf === undefined || isTruthy(await evaluate(deps, 'run_if', runIf, request, running))
}

/** Runs one step. @throws Failure of a call, EXPRESSION_FAILED, DEFINITION_INVALID for a form */
export async function runStep(
  deps: CallDependencies,
  step: StepPlan,
  request: ActionRequest,
  running: RunningContext,
): Promise<StepEnd> {
  const { access } = running
  switch (step.type) {
    case 'request':
      return await send(deps, { method: step.request, path: '' }, request, running)
    case 'transform': {
      const value = await evaluate(deps, 'transform', step.expression, request, running)
      return { outcome: computed(value ?? null), access, patch: UNCHANGED }
    }
    case 'update_context': {
      const patch = await readPatch(deps, step.patch, request, running)
      return { outcome: computed(patch), access, patch }
    }
    case 'form':
      throw new Failure('DEFINITION_INVALID', 'a form asks a person: only post_connect_user_form may have one')
  }
}

async function send(
  deps: CallDependencies,
  target: Job['target'],
  request: ActionRequest,
  running: RunningContext,
): Promise<StepEnd> {
  const limits = { responseBytesMax: RESPONSE_BYTES_MAX, ...request.limits }
  const stepRequest = { ...request, headers: undefined, page: undefined, limits, action: running }
  const job: Job = { target, request: stepRequest, access: running.access }
  const answer = await perform(deps, job)
  return { outcome: await singleOutcome(deps, job, answer), access: job.access, patch: UNCHANGED }
}

/** @throws Failure EXPRESSION_FAILED when there is something to merge and it is no object */
async function readPatch(
  deps: CallDependencies,
  source: ContextSource,
  request: ActionRequest,
  running: RunningContext,
): Promise<JsonObject> {
  const value = await patchFrom(deps, source, request, running)
  if (value === undefined || value === null) return UNCHANGED
  if (isJsonObject(value)) return value
  throw new Failure('EXPRESSION_FAILED', 'update_context: there is no object of context keys to merge')
}

async function patchFrom(
  deps: CallDependencies,
  source: ContextSource,
  request: ActionRequest,
  running: RunningContext,
): Promise<Json | undefined> {
  switch (source.kind) {
    case 'previous':
      return running.previous
    case 'expression':
      return await evaluate(deps, 'update_context', source.text, request, running)
    case 'template': {
      const scope: Scope = { account: running.access, call: { ...request, action: running } }
      return renderJson(source.template, scope)
    }
  }
}

/** Expressions see the account's context and what the caller gave, never credentials or variables of the environment. */
function evaluate(
  { evaluator }: CallDependencies,
  setting: string,
  expression: string,
  { args = {}, query = {}, body = null, id = null }: ActionRequest,
  { access, previous, steps }: RunningContext,
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
export function computed(result: Json): SuccessOutcome {
  return { kind: 'ok', status: 200, headers: {}, body: result, result, page: undefined, rateLimit: undefined }
}
