import type { ConnectError } from '@connectrpc/connect'
import { RetryInfoSchema } from '../../gen/google/rpc/error_details_pb.ts'

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
