import type { DotPath, Json, JsonObject } from '../base/index.ts'
import { compileJson, listPlaceholderPaths } from '../expression/index.ts'
import type { ActionPlan, ContextSource, StepPlan } from './action-plan.ts'
import { type ActionDefinition, isLongExpression, type StepDefinition, stepName } from './action-schema.ts'
import type { MethodDefinition } from './method-schema.ts'
import type { MethodPlan } from './plan.ts'

/** The resource name of actions: in addresses (`/proxy/_/{action}`), syncs and reports. */
export const ACTION_RESOURCE = '_'

/** Compiles a request of an action. */
export type CompileRequest = (request: MethodDefinition) => MethodPlan

/** Compiles one action of a config. */
export function compileAction(name: string, action: ActionDefinition, compileRequest: CompileRequest): ActionPlan {
  const steps = stepsOf(action).map((step, index) => compileStep(step, index, compileRequest))
  const isWrite = steps.some((step) => step.type === 'request' && step.request.isWrite)
  return { name, steps, isWrite, parentPaths: findParentPaths(action, steps) }
}

/** Requests name what the integration reads for them too; contexts are updated by templates of the step alone. */
function findParentPaths(action: ActionDefinition, steps: readonly StepPlan[]): DotPath[] {
  const own = listPlaceholderPaths(action as Json).flatMap((path) => (path.root === 'resources' ? [path.steps] : []))
  return [...own, ...steps.flatMap((step) => (step.type === 'request' ? step.request.parentPaths : []))]
}

function stepsOf(action: ActionDefinition): readonly StepDefinition[] {
  return 'steps' in action ? action.steps : [action]
}

function compileStep(step: StepDefinition, index: number, compileRequest: CompileRequest): StepPlan {
  const common = { name: stepName(step, index), runIf: step.run_if }
  switch (step.type) {
    case 'request':
      return { ...common, type: 'request', request: compileRequest(step.config) }
    case 'transform':
      return { ...common, type: 'transform', expression: expressionOf(step.config) }
    case 'update_context':
      return { ...common, type: 'update_context', patch: sourceOf(step.config) }
    case 'form':
      return { ...common, type: 'form' }
  }
}

function expressionOf(config: string | { readonly expression: string }): string {
  return typeof config === 'string' ? config : config.expression
}

function sourceOf(config: string | JsonObject | undefined): ContextSource {
  if (config === undefined) return { kind: 'previous' }
  if (typeof config === 'string') return { kind: 'expression', text: config }
  return isLongExpression(config)
    ? { kind: 'expression', text: config.expression }
    : { kind: 'template', template: compileJson(config) }
}
