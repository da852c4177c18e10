import { Failure, invalidFields, isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import { applyArgsSchema } from './args-schema.ts'

/** What a job says about its arguments. */
export interface ArgsRules {
  readonly argsSchema: JsonObject
  /** JSONata; empty: no check. */
  readonly argsValidation: string
}

/** Evaluates JSONata with the given object as `$`. @throws Failure EXPRESSION_FAILED */
export type ArgsEvaluator = (expression: string, input: JsonObject) => Promise<Json | undefined>

/**
 * The arguments of a run: defaults of the schema filled in, validated by the schema and then by the job's own check, which
 * sees `{args}` and returns nothing when they are fine, else `{message}`.
 *
 * @throws Failure ARGS_INVALID with every violation, EXPRESSION_FAILED when the check itself does not work
 */
export async function resolveArgs(evaluate: ArgsEvaluator, rules: ArgsRules, given: JsonObject): Promise<JsonObject> {
  const result = applyArgsSchema(rules.argsSchema, given)
  if (result.kind === 'invalid') throw invalidFields(result.violations, 'ARGS_INVALID')
  if (rules.argsValidation === '') return result.args
  const objection = await evaluate(rules.argsValidation, { args: result.args })
  if (!objection) return result.args
  throw new Failure('ARGS_INVALID', `the job refuses the arguments: ${objectionMessage(objection)}`, {
    violations: [{ field: 'args', description: objectionMessage(objection), rule: 'args.validation' }],
  })
}

function objectionMessage(objection: Json): string {
  const message = isJsonObject(objection) ? objection.message : objection
  return typeof message === 'string' ? message : 'they do not pass args_validation'
}
