import { Failure, type Json, type JsonObject } from '../base/index.ts'
import type { ExpressionEvaluator } from './dependencies.ts'

/**
 * Evaluates the expression of a setting; a failure names the setting, because one answer may pass several expressions.
 *
 * @param bindings values of variables
 * @throws Failure EXPRESSION_FAILED, EXPRESSION_QUARANTINED and the other reasons of the evaluator
 */
export async function evaluateSetting(
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
