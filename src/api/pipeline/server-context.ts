import { Failure, type FairSemaphore, type Slab, type StatusCode } from '../../base/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { Access } from '../caller.ts'
import type { Exchange } from '../exchange.ts'
import type { ApiLimits } from '../limits.ts'
import type { RequestContext } from '../request-context.ts'
import type { AccessControl } from './authenticate.ts'

/** One finished call, for metrics. */
export interface Observation {
  /** The operation's path; for plain routes the route's, never the client's text. */
  readonly operation: string
  readonly wire: 'grpc' | 'grpc_web' | 'connect' | 'rest'
  readonly outcome: StatusCode | 'OK'
  readonly durationMs: number
}

/** What the stages share: built once per server. */
export interface ServerContext {
  readonly gate: AccessControl
  readonly limits: ApiLimits
  readonly logger: Logger
  /** Recognises errors of other layers, e.g. a statement timeout of the database. */
  readonly translateError: ((error: unknown) => Failure | undefined) | undefined
  readonly observe: ((observation: Observation) => void) | undefined
  /** Every request whose response is not closed. */
  readonly openExchanges: Slab<Exchange>
  /** Streams under way, which a drain ends before its deadline. */
  readonly openStreams: Set<RequestContext>
  /** Places of streams with a token, shared by environments, and of those without, shared by client addresses. */
  readonly streamPlaces: FairSemaphore
  readonly publicStreamPlaces: FairSemaphore
}

const RETRY_AFTER_SECONDS = 5

/**
 * Takes a place for a call that may last, until it is closed. To be called once the call is admitted.
 *
 * @throws Failure RATE_LIMITED when its environment (without a token: its client address) has its share of the places
 */
export function acquireStreamSlot(core: ServerContext, access: Access, call: RequestContext): void {
  const release =
    access === 'public'
      ? core.publicStreamPlaces.tryAcquire(call.clientAddress(core.gate.trustedProxies))
      : core.streamPlaces.tryAcquire(call.principal.environmentId ?? call.principal.teamId)
  if (release === undefined) {
    const who = access === 'public' ? 'this address' : 'this environment'
    const message = `${who} has as many streams open here as it may; close one, or try another server`
    throw new Failure('RATE_LIMITED', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
  call.onClose(release)
}
