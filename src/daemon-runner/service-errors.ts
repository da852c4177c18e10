import { Code, ConnectError } from '@connectrpc/connect'
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts'
import { FAILURE_REASONS, Failure, type FailureReason } from '../base/index.ts'
import { retryAfterSecondsOf, ServerUnavailable } from '../client/index.ts'

/** Refusals that say something about the service rather than about what was asked. */
const UNAVAILABLE_REASONS: ReadonlySet<string> = new Set(['SHUTTING_DOWN', 'DATABASE_UNAVAILABLE', 'REQUEST_STALLED'])
/** A call without a reason never came to the service, unless it is one of these: then the address is wrong. */
const MISCONFIGURED_CODES: ReadonlySet<Code> = new Set([
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.Unimplemented,
])
const NO_ACCESS_CODES: ReadonlySet<string> = new Set(['UNAUTHENTICATED', 'PERMISSION_DENIED'])

/**
 * What an error of a call means: a refusal with its reason, as the service raised it; that the service is away; or the
 * error itself.
 */
export function serviceErrorFrom(error: unknown): unknown {
  if (!(error instanceof ConnectError)) return error
  const info = error.findDetails(ErrorInfoSchema)[0]
  const retryAfterSeconds = retryAfterSecondsOf(error)
  const afterMs = (retryAfterSeconds ?? 0) * 1_000
  if (info === undefined)
    return MISCONFIGURED_CODES.has(error.code) ? error : new ServerUnavailable(error.message, afterMs, error)
  if (UNAVAILABLE_REASONS.has(info.reason)) return new ServerUnavailable(error.message, afterMs, error)
  if (!isKnownReason(info.reason)) return error
  return new Failure(info.reason, error.rawMessage, {
    metadata: { ...info.metadata },
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    cause: error,
  })
}

/** Like `refusalFrom` for a call of the daemon's own, whose rate the service may limit too. */
export function daemonCallErrorFrom(error: unknown): unknown {
  const refusal = serviceErrorFrom(error)
  if (!(refusal instanceof Failure) || refusal.reason !== 'RATE_LIMITED') return refusal
  return new ServerUnavailable(refusal.publicMessage, (refusal.retryAfterSeconds ?? 0) * 1_000, error)
}

/** Tells whether the daemon may not do what it does, now and later: its token is wrong or gone, or the address is. */
export function isFatal(refusal: unknown): boolean {
  if (refusal instanceof Failure) return NO_ACCESS_CODES.has(refusal.code) || refusal.reason === 'ENVIRONMENT_REQUIRED'
  return refusal instanceof ConnectError && MISCONFIGURED_CODES.has(refusal.code)
}

/** Tells whether the refusal has this reason. */
export function hasReason(refusal: unknown, reason: FailureReason): refusal is Failure {
  return refusal instanceof Failure && refusal.reason === reason
}

/** A defect of the service is no refusal: whoever asked may try again. */
function isKnownReason(reason: string): reason is FailureReason {
  return reason !== 'INTERNAL' && Object.hasOwn(FAILURE_REASONS, reason)
}
