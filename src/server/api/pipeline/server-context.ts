import type { Failure, Slab, StatusCode } from '../../../foundation/base/index.ts'
import type { Database } from '../../../foundation/database/index.ts'
import type { FairSemaphore, FairSlots } from '../../../foundation/fair/index.ts'
import type { Logger } from '../../../foundation/telemetry/index.ts'
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
  /** Path of the public address, without a trailing slash: what browsers are sent to begins with it. */
  readonly basePath: string
  readonly accessControl: AccessControl
  readonly limits: ApiLimits
  readonly logger: Logger
  /** Maps errors of other layers, such as a statement timeout of the database; undefined for an unknown one. */
  readonly translateError: ((error: unknown) => Failure | undefined) | undefined
  /** Where calls that store nothing have their entry of the audit log; `undefined`: no call has one. */
  readonly auditDatabase: Database | undefined
  readonly observe: ((observation: Observation) => void) | undefined
  /** Every request whose response is not closed. */
  readonly openExchanges: Slab<Exchange>
  /** Streams in progress, which a drain ends before its deadline. */
  readonly openStreams: Set<RequestContext>
  /** Slots of requests that are worked on, shared by environments, teams and client addresses. */
  readonly requestSlots: FairSlots
  /** Bytes of large bodies in memory, shared by environments. */
  readonly bodyBytes: FairSemaphore
  /** Bytes of answers that clients have yet to read, shared by environments, teams and client addresses. */
  readonly answerBytes: FairSemaphore
  /** Slots of streams with a token, shared by environments. */
  readonly streamSlots: FairSemaphore
  /** Slots of streams without a token, shared by client addresses. */
  readonly publicStreamSlots: FairSemaphore
  /** Bytes of bodies whose senders are not authenticated; client addresses share them. */
  readonly unauthenticatedBytes: FairSemaphore
}
