import { Failure, type FairSemaphore, type Slab, type StatusCode } from '../../base/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { Access } from '../access.ts'
import { callerOf } from '../caller.ts'
import type { Exchange } from '../exchange.ts'
import type { ApiLimits } from '../limits.ts'
import type { RequestContext } from '../request-context.ts'
import type { AccessControl } from './authenticate.ts'

/** One completed request, for metrics. */
export interface Observation {
  /** Path of the operation or HTTP route, never the client's text. */
  readonly operation: string
  readonly outcome: StatusCode | 'OK'
  readonly durationMs: number
}

/** What all requests of a server share: built once. */
export interface ServerContext {
  readonly accessControl: AccessControl
  readonly limits: ApiLimits
  readonly logger: Logger
  /** Maps errors of other layers, such as a statement timeout of the database; undefined for an unknown one. */
  readonly translateError: ((error: unknown) => Failure | undefined) | undefined
  readonly observe: ((observation: Observation) => void) | undefined
  /** Every request whose response is not closed. */
  readonly openExchanges: Slab<Exchange>
  /** Streams in progress, which a drain ends before its deadline. */
  readonly openStreams: Set<RequestContext>
  /** Slots of streams with a token, shared by environments. */
  readonly streamSlots: FairSemaphore
  /** Slots of streams without a token, shared by client addresses. */
  readonly publicStreamSlots: FairSemaphore
}

const RETRY_AFTER_SECONDS = 5

/**
 * Acquires a slot for an authenticated request that may last, until the request is closed.
 *
 * @throws Failure RATE_LIMITED when its environment (without a token: its client address) has its share of the slots
 */
export function acquireStreamSlot({ server, context }: Exchange, access: Access): void {
  const release = access === 'public' ? acquirePublicSlot(server, context) : acquireCallerSlot(server, context)
  if (release === undefined) {
    const who = access === 'public' ? 'this address' : 'this environment'
    const message = `${who} has as many streams open here as it may; close one, or try another server`
    throw new Failure('RATE_LIMITED', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
  context.onClose(release)
}

function acquirePublicSlot({ publicStreamSlots, accessControl }: ServerContext, context: RequestContext) {
  return publicStreamSlots.tryAcquire(context.clientAddress(accessControl.trustedProxies))
}

function acquireCallerSlot({ streamSlots }: ServerContext, context: RequestContext) {
  const { environmentId, teamId } = callerOf(context)
  return streamSlots.tryAcquire(environmentId ?? teamId)
}
