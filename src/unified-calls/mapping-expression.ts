import { Failure, isJsonObject, type Json, type JsonObject, yieldToEventLoop } from '../base/index.ts'
import {
  BAILED_OUT,
  compileExpression,
  type Evaluator,
  type InlineEvaluation,
  listInputPaths,
} from '../expressions/index.ts'

/** Evaluates the expressions of mappings. */
export type MappingEvaluator = Pick<Evaluator, 'evaluate' | 'evaluateEach'>

/** An expression of a mapping, compiled. */
export interface MappingExpression {
  readonly text: string
  /** Absent: only the sandbox evaluates it. */
  readonly inline: InlineEvaluation | undefined
  /** What it reads of its root, as paths of names; `undefined`: the root as a whole. */
  readonly paths: readonly (readonly string[])[] | undefined
  /** Its value depends on the root. */
  readonly readsRoot: boolean
}

/** Compiles an expression. */
export function compileMappingExpression(text: string): MappingExpression {
  const paths = listInputPaths(text)
  return { text, inline: compileExpression(text), paths, readsRoot: paths === undefined || paths.length > 0 }
}

/** What all expressions of a call share. */
export interface Evaluation {
  readonly evaluator: MappingEvaluator
  /** Values of variables. */
  readonly bindings: JsonObject
  /** Share of the sandbox. */
  readonly owner: string | undefined
}

/** The values of one expression for several inputs. */
export interface ValueColumn {
  readonly leaf: MappingExpression
  /** By input. */
  readonly values: (Json | undefined)[]
  /** Inputs that the sandbox evaluates. */
  readonly pending: number[]
  /** Why it failed, by input. */
  readonly failures: Map<number, Failure>
}

/** Size limit of input and result of an expression: `items` reads a whole page of a list. */
const EXPRESSION_BYTES_MAX = 5 * 1024 * 1024
/** Longest time for which evaluations hold the event loop. */
const TURN_MS = 5
/** Inputs between two looks at the clock. */
const INPUTS_PER_LOOK = 16
/** Expressions that wait for the sandbox at the same time. */
const SANDBOX_CONCURRENCY = 4

/** Gives other work of this process its turn. */
export class Turn {
  #until = performance.now() + TURN_MS

  /** Whether it is time to pause. */
  get isOver(): boolean {
    return performance.now() > this.#until
  }

  async pause(): Promise<void> {
    await yieldToEventLoop()
    this.#until = performance.now() + TURN_MS
  }
}

/**
 * Evaluates expressions over the same inputs: in this process where they are cheap, the others in the sandbox, one request per
 * expression. An expression that fails for an input has no value there.
 *
 * @throws Failure EXPRESSION_QUARANTINED, RATE_LIMITED, DEADLINE_EXCEEDED, SHUTTING_DOWN, INTERNAL
 */
export async function evaluateColumns(
  evaluation: Evaluation,
  leaves: readonly MappingExpression[],
  inputs: readonly JsonObject[],
): Promise<readonly ValueColumn[]> {
  const turn = new Turn()
  const columns: ValueColumn[] = []
  for (const leaf of leaves) {
    const column: ValueColumn = { leaf, values: new Array(inputs.length), pending: [], failures: new Map() }
    columns.push(column)
    for (let from = 0; from < inputs.length; from += INPUTS_PER_LOOK) {
      evaluateInline(column, inputs, evaluation.bindings, from)
      if (turn.isOver) await turn.pause()
    }
  }
  const open = columns.filter(({ pending }) => pending.length > 0).values()
  const work = async (): Promise<void> => {
    for (const column of open) await evaluateInSandbox(evaluation, column, inputs)
  }
  await Promise.all(Array.from({ length: SANDBOX_CONCURRENCY }, work))
  return columns
}

function evaluateInline(column: ValueColumn, inputs: readonly JsonObject[], bindings: JsonObject, from: number): void {
  const { leaf, values, pending } = column
  const { inline } = leaf
  const end = Math.min(inputs.length, from + INPUTS_PER_LOOK)
  for (let at = from; at < end; at++) {
    const value = inline === undefined ? BAILED_OUT : inline(inputs[at] as JsonObject, bindings)
    if (value === BAILED_OUT) pending.push(at)
    else values[at] = value
  }
}

async function evaluateInSandbox(
  { evaluator, bindings, owner }: Evaluation,
  { leaf, values, pending, failures }: ValueColumn,
  inputs: readonly JsonObject[],
): Promise<void> {
  const results = await evaluator.evaluateEach(
    leaf.text,
    pending.map((at) => inputs[at] as JsonObject),
    optionsOf(bindings, owner),
  )
  for (const [index, at] of pending.entries()) {
    const result = results[index]
    if (result === undefined) continue
    if ('failure' in result) failures.set(at, result.failure)
    else values[at] = result.value
  }
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
  const value = leaf.inline === undefined ? BAILED_OUT : leaf.inline(input, bindings)
  if (value !== BAILED_OUT) return value
  try {
    return await evaluator.evaluate(leaf.text, input, optionsOf(bindings, owner))
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
