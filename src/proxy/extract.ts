import { getAtPath, isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import type { MethodPlan } from '../definition/index.ts'
import type { ExpressionEvaluator } from './dependencies.ts'
import { evaluateSetting } from './evaluate-setting.ts'

/**
 * Stage 10: what `response_path` selects of a successful body; `null` when there is nothing.
 *
 * JSONata sees the body as `$`; a body that is not an object is wrapped for it, so that `$.body` is always the body.
 *
 * @throws Failure EXPRESSION_FAILED
 */
export async function extract(evaluator: ExpressionEvaluator, { responsePath }: MethodPlan, body: Json): Promise<Json> {
  if (responsePath === undefined) return body
  if (responsePath.kind === 'path') return getAtPath(body, responsePath.steps) ?? null
  return (await evaluateSetting(evaluator, 'response_path', responsePath.text, expressionInput(body))) ?? null
}

/** The records of a list: nothing is an empty list, a single value a list of one. */
export function recordsOf(result: Json): readonly Json[] {
  if (Array.isArray(result)) return result
  return result === null || result === '' ? [] : [result]
}

function expressionInput(body: Json): JsonObject {
  return isJsonObject(body) ? body : { body }
}
