import { Failure } from '../../base/index.ts'
import { describeError, type Logger, summariseError } from '../../telemetry/index.ts'
import type { RequestContext } from '../open-call.ts'
import { restStatus } from './status.ts'

/** What the funnel needs to judge an error it does not know. */
export interface ErrorMapperDeps {
  readonly logger: Logger
  /** Recognises errors of other layers, e.g. a statement timeout of the database. */
  readonly translateError: ((error: unknown) => Failure | undefined) | undefined
}

/**
 * The one way from anything thrown to an answer: failures pass, known errors are translated, everything else is a bug,
 * logged and shown as nothing but "internal error".
 *
 * What an upstream said goes to the caller alone: it may quote what it was sent.
 */
export function toFailure(deps: ErrorMapperDeps, error: unknown, call: RequestContext, operation: string): Failure {
  const failure = error instanceof Failure ? error : (deps.translateError?.(error) ?? internal(error))
  const fields = { request_id: call.requestId, operation, ...call.logFields, reason: failure.reason }
  if (restStatus(failure) === 500)
    deps.logger.error({ ...fields, ...describeError(failure.cause ?? failure) }, 'call failed')
  else if (restStatus(failure) > 500 && failure.reason !== 'UPSTREAM_ERROR')
    deps.logger.warn({ ...fields, ...summariseError(failure) }, 'call failed')
  else deps.logger.debug(fields, 'call refused')
  return failure
}

function internal(cause: unknown): Failure {
  return new Failure('INTERNAL', 'internal error', { cause })
}
