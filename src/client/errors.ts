import { Code, ConnectError } from '@connectrpc/connect'
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/google/rpc/error_details_pb.ts'
import { FAILURE_REASONS, Failure, type FailureReason } from '../base/index.ts'

/** The server cannot be reached, or can do nothing at the moment: the same call may succeed later. */
export class ServerUnavailable extends Error {
  /** The least it asked to wait. */
  readonly afterMs: number

  constructor(message: string, afterMs: number, cause: unknown) {
    super(message, { cause })
    this.name = 'ServerAway'
    this.afterMs = afterMs
  }
}

/** How long the server asks to wait; `undefined` when it does not. */
export function retryAfterSecondsOf(error: ConnectError): number | undefined {
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay
  return delay === undefined ? undefined : Number(delay.seconds) + delay.nanos / 1e9
}

/** Refusals that another moment, or another server, may not repeat. */
const TRANSIENT_CODES: ReadonlySet<Code> = new Set([Code.Unavailable, Code.ResourceExhausted, Code.DeadlineExceeded])
/** Of calls without a reason, these never came to the service, or broke on the way back. */
const TRANSIENT_WITHOUT_REASON: ReadonlySet<Code> = new Set([
  ...TRANSIENT_CODES,
  Code.Aborted,
  Code.Canceled,
  Code.Internal,
  Code.Unknown,
])

/** What the error of a call means: a refusal with its reason, `ServerUnavailable`, or something else that answers there. */
export function clientErrorFrom(error: unknown): unknown {
  const refused = ConnectError.from(error)
  const reason = refused.findDetails(ErrorInfoSchema)[0]?.reason
  const passing = reason === undefined ? TRANSIENT_WITHOUT_REASON : TRANSIENT_CODES
  if (passing.has(refused.code))
    return new ServerUnavailable(connectionErrorText(refused), (retryAfterSecondsOf(refused) ?? 0) * 1_000, error)
  if (reason !== undefined && isFailureReason(reason)) return new Failure(reason, refused.rawMessage, { cause: error })
  return new Failure('INTERNAL', `the server answered ${Code[refused.code]}: ${refused.rawMessage}`, { cause: error })
}

/** Node's own words for a server that is not there name the address; Connect's add nothing to them. */
function connectionErrorText({ cause, rawMessage }: ConnectError): string {
  if (cause instanceof AggregateError) return cause.errors.map((each) => String(each?.message ?? each)).join(', ')
  return cause instanceof Error && cause.message !== '' ? cause.message : rawMessage
}

function isFailureReason(text: string): text is FailureReason {
  return Object.hasOwn(FAILURE_REASONS, text)
}
