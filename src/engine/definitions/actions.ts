import { z } from 'zod'
import type { DotPath, Json, JsonObject } from '../../foundation/json/index.ts'
import { validateExpression } from '../expressions/parse.ts'
import { compileJson, listPlaceholderPaths } from '../expressions/template.ts'
import {
  anyJson,
  expressionText,
  mapOf,
  nameText,
  plainText,
  refineWith,
  templateMap,
} from '../formats/schema-types.ts'
import { compileFormFields, formSchema } from './form-fields.ts'
import { identifierText, type MethodDefinition, stepRequestSchema } from './method-schema.ts'
import type { ActionPlan, ContextSource, MethodPlan, StepPlan } from './plan.ts'

/** Root names of expressions in steps; earlier results are variables. */
const CALL_ROOTS = ['context', 'args', 'query', 'body', 'id'] as const

const longExpression = z.strictObject({ expression: expressionText(CALL_ROOTS).describe('The JSONata.') })

/** Both forms of an expression: the text, or `{expression}`. */
const expression = z.union([expressionText(CALL_ROOTS), longExpression])

/** Context keys by name. An object with `expression` alone belongs to the other option of the union. */
const contextKeys = templateMap().superRefine(refineWith(findLongExpression, 'expression.syntax'))

const TYPE = 'What the step does.'

const stepTypes = [
  z.strictObject({
    type: z.literal('request').describe(TYPE),
    config: stepRequestSchema.describe('A request; steps are not paged.'),
  }),
  z.strictObject({
    type: z.literal('transform').describe(TYPE),
    config: expression.describe('JSONata over the call: context, args, query, body, id; and $previous, $steps.<name>.'),
  }),
  z.strictObject({
    type: z.literal('update_context').describe(TYPE),
    config: z
      .union([contextKeys, expression])
      .optional()
      .describe('Context keys: an object with placeholders, or JSONata that returns one. Default: the result before.'),
  }),
  z.strictObject({
    type: z.literal('form').describe(TYPE),
    config: formSchema.describe('A form that the customer fills in.'),
  }),
] as const

const stepKeys = {
  name: identifierText('step')
    .optional()
    .describe('Later steps read the result as $steps.<name>. Default: type and place, for example request_1.'),
  run_if: expressionText(CALL_ROOTS)
    .optional()
    .describe('JSONata, as for transform; the step is skipped unless the result is truthy.'),
}

const step = z.discriminatedUnion('type', [
  stepTypes[0].extend(stepKeys),
  stepTypes[1].extend(stepKeys),
  stepTypes[2].extend(stepKeys),
  stepTypes[3].extend(stepKeys),
])

/** What agents read of an action; without a description it is no tool. */
const toolKeys = {
  description: plainText().optional().describe('What the action does, for people and for tools.'),
  args_schema: mapOf(nameText(), anyJson()).optional().describe('JSON Schema of the arguments (`{{args.<name>}}`).'),
}

const steps = z.strictObject({ ...toolKeys, steps: z.array(step).min(1).max(50).describe('Steps that run in order.') })

const singleStep = z.discriminatedUnion('type', [
  stepTypes[0].extend(toolKeys),
  stepTypes[1].extend(toolKeys),
  stepTypes[2].extend(toolKeys),
  stepTypes[3].extend(toolKeys),
])

/** A named action: one step, or several that share a running context. */
export const actionSchema = z.union([singleStep, steps]).meta({ id: 'Action' })

export type ActionDefinition = z.output<typeof actionSchema>
type StepDefinition = z.output<typeof step>

/** Names of actions that run in the life cycle of an account and cannot be called. */
export const RESERVED_ACTIONS = ['post_install', 'validation', 'refresh_token', 'post_connect_user_form'] as const

/** The action whose steps are forms: what the customer chooses once the account is connected. */
export const FORM_ACTION = 'post_connect_user_form' satisfies (typeof RESERVED_ACTIONS)[number]

/** The name of a step, or its default. @param index from 0 */
export function stepName({ name, type }: { readonly name?: string | undefined; readonly type: string }, index: number) {
  return name ?? `${type}_${index + 1}`
}

/** True for the long form of an expression, `{expression: "…"}`. */
function isLongExpression(config: object): config is { readonly expression: string } {
  return 'expression' in config && typeof config.expression === 'string' && Object.keys(config).length === 1
}

function findLongExpression(keys: Readonly<Record<string, Json>>): string | undefined {
  if (!isLongExpression(keys)) return undefined
  const parsed = validateExpression(keys.expression)
  return 'problem' in parsed ? `is not a JSONata expression: ${parsed.problem}` : 'is an expression'
}

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

/** Reads of parent records by the steps, including those by templates of the integration in requests. */
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
    case 'form': {
      const { fields, before_active: isBeforeActive } = step.config
      return { ...common, type: 'form', fields: compileFormFields(fields), isBeforeActive }
    }
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
