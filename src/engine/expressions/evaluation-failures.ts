import { Failure } from '../../foundation/base/index.ts'
import type { ExpressionProblem } from './parse.ts'
import type { EvaluationError } from './sandbox/protocol.ts'
import type { EvaluationOutcome, KillCause } from './sandbox-process.ts'

/** The expression does not parse, or is longer or deeper than allowed. */
export function syntaxFailure({ problem, code, position }: ExpressionProblem): Failure {
  return expressionFailed(`the expression cannot be used: ${problem}`, { code, position: String(position) })
}

/** The evaluation ended with an error of JSONata or of one of its functions. */
export function evaluationFailure({ code, message, position }: EvaluationError): Failure {
  const where = position === undefined ? '' : ` at position ${position}`
  const metadata = position === undefined ? { code } : { code, position: String(position) }
  return expressionFailed(`the expression failed${where}: ${message}`, metadata)
}

/** The process of the evaluation was killed. */
export function killFailure(cause: KillCause): Failure {
  switch (cause) {
    case 'time':
      return expressionFailed('the expression took too long and was stopped', { code: 'TIME_LIMIT' })
    case 'memory':
    case 'crash':
      return expressionFailed('the expression used too much memory and was stopped', { code: 'MEMORY_LIMIT' })
  }
}

/** The input is larger than the caller allows. */
export function inputTooLarge(bytesMax: number): Failure {
  return expressionFailed(`the input of the expression is larger than ${bytesMax} bytes`, { code: 'INPUT_TOO_LARGE' })
}

/** The result has a whole number beyond 2^53 that stands for several of the input. */
export function ambiguousNumber(): Failure {
  const message =
    'the expression passes on whole numbers beyond 2^53 that are the same to JSONata: take them out by a path, or compare them as texts'
  return expressionFailed(message, { code: 'NUMBER_AMBIGUOUS' })
}

/** The expression was killed too often for this owner. */
export function quarantineFailure(until: Date): Failure {
  const time = until.toISOString()
  const message = `the expression exceeded its limits several times and is not evaluated until ${time}; change it to go on`
  return new Failure('EXPRESSION_QUARANTINED', message, { metadata: { until: time } })
}

/** The evaluation did not start. */
export function rejectionFailure(cause: Extract<EvaluationOutcome, { kind: 'rejected' }>['cause']): Failure {
  switch (cause) {
    case 'queue_full':
      return new Failure('RATE_LIMITED', 'too many expressions are waiting to be evaluated', { retryAfterSeconds: 1 })
    case 'waited_too_long':
      return new Failure('DEADLINE_EXCEEDED', 'the expression waited too long to be evaluated')
    case 'closed':
      return new Failure('SHUTTING_DOWN', 'expressions are not evaluated any more')
    case 'no_sandbox':
      return new Failure('INTERNAL', 'the processes that evaluate expressions do not start')
  }
}

function expressionFailed(message: string, metadata: Readonly<Record<string, string>>): Failure {
  return new Failure('EXPRESSION_FAILED', message, { metadata })
}
