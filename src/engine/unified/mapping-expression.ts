import { Failure } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import {
  type CompiledExpression,
  compileExpression,
  type Evaluator,
  type ValueColumn,
} from '../expressions/evaluator.ts'
import { listInputPaths } from '../expressions/input-analysis.ts'

/** Evaluates the expressions of mappings. */
export type MappingEvaluator = Pick<Evaluator, 'evaluate' | 'evaluateAll'>

/** An expression of a mapping, compiled. */
export interface MappingExpression extends CompiledExpression {
  /** What it reads of its root, as paths of names; `undefined`: the root as a whole. */
  readonly paths: readonly (readonly string[])[] | undefined
  /** Its value depends on the root. */
  readonly readsRoot: boolean
}

/** Compiles an expression. */
export function compileMappingExpression(text: string): MappingExpression {
  const paths = listInputPaths(text)
  return { ...compileExpression(text), paths, readsRoot: paths === undefined || paths.length > 0 }
}

/** What all expressions of a call share. */
export interface Evaluation {
  readonly evaluator: MappingEvaluator
  /** Values of variables. */
  readonly bindings: JsonObject
  /** Share of the sandbox. */
  readonly owner: string | undefined
}

/** Size limit of input and result of an expression: `items` reads a whole page of a list. */
const EXPRESSION_BYTES_MAX = 5 * 1024 * 1024

/**
 * Evaluates expressions over the same inputs. An expression that fails for an input has no value there.
 *
 * @throws Failure EXPRESSION_QUARANTINED, RATE_LIMITED, DEADLINE_EXCEEDED, SHUTTING_DOWN, INTERNAL
 */
export function evaluateColumns(
  { evaluator, bindings, owner }: Evaluation,
  leaves: readonly MappingExpression[],
  inputs: readonly JsonObject[],
): Promise<readonly ValueColumn[]> {
  return evaluator.evaluateAll(leaves, inputs, optionsOf(bindings, owner))
}

/**
 * The value of one expression. A failure names the setting.
 *
 * @throws Failure EXPRESSION_FAILED and the other reasons of the evaluator
 */
export async function evaluateMappingExpression(
  { evaluator, bindings, owner }: Evaluation,
  leaf: MappingExpression,
  input: JsonObject,
  setting: string,
): Promise<Json | undefined> {
  try {
    return await evaluator.evaluate(leaf, input, optionsOf(bindings, owner))
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    throw ofSetting(error, setting)
  }
}

function optionsOf(bindings: JsonObject, owner: string | undefined) {
  const limits = { bindings, inputBytesMax: EXPRESSION_BYTES_MAX, resultBytesMax: EXPRESSION_BYTES_MAX }
  return owner === undefined ? limits : { ...limits, owner }
}

/** The failure of an expression, with the name of its setting. */
export function ofSetting(failure: Failure, setting: string): Failure {
  const { reason, publicMessage, metadata, retryAfterSeconds } = failure
  return new Failure(reason, `${setting}: ${publicMessage}`, {
    metadata: { ...metadata, setting },
    cause: failure,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  })
}

/** A record as root of expressions: one that is not an object is its `value`. */
export function asRoot(record: Json): JsonObject {
  return isJsonObject(record) ? record : { value: record }
}
