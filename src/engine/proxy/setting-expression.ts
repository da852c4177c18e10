import { Failure } from '../../foundation/base/index.ts'
import { headerTexts } from '../../foundation/egress/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import { environmentRoots } from '../expressions/environment-variables.ts'
import type { RESPONSE_ROOTS } from '../formats/schema-types.ts'
import type { DecodedResponse } from './decode-response.ts'
import type { CallDependencies, ExpressionEvaluator } from './dependencies.ts'

/** What evaluating an expression of a setting takes. */
export type ExpressionDependencies = Pick<CallDependencies, 'evaluator' | 'environmentVariables'>

/**
 * The input of `is_rate_limited`, the header expressions and `error_expression`: `response {status, headers, body}`, and bare
 * `status`, `headers`, `body`, `data` (the body again).
 */
export function responseInput({
  status,
  headers: given,
  body,
}: DecodedResponse): JsonObject & Record<(typeof RESPONSE_ROOTS)[number], Json> {
  const headers = headerTexts(given)
  return { response: { status, headers, body }, status, headers, body, data: body }
}

/**
 * Evaluates the expression of a setting over its roots and the environment variables that it may read (`environmentRoots`).
 *
 * @param bindings values of variables
 * @throws Failure EXPRESSION_FAILED, EXPRESSION_QUARANTINED and the other reasons of the evaluator
 */
export async function evaluateSetting(
  { evaluator, environmentVariables }: ExpressionDependencies,
  setting: string,
  expression: string,
  roots: JsonObject,
  bindings: JsonObject = {},
): Promise<Json | undefined> {
  const variables = environmentRoots(expression, environmentVariables)
  return await evaluateNamed(evaluator, setting, expression, { ...roots, ...variables }, bindings)
}

/**
 * Evaluates an expression over nothing but its input; a failure names the setting, because several expressions read one
 * response.
 *
 * @throws Failure as `evaluateSetting`
 */
export async function evaluateNamed(
  evaluator: ExpressionEvaluator,
  setting: string,
  expression: string,
  roots: JsonObject,
  bindings: JsonObject = {},
): Promise<Json | undefined> {
  try {
    return await evaluator.evaluate(expression, roots, { bindings })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const { reason, publicMessage, metadata, retryAfterSeconds } = error
    throw new Failure(reason, `${setting}: ${publicMessage}`, {
      metadata: { ...metadata, setting },
      cause: error,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    })
  }
}
