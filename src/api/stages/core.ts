import type { Failure, FairSemaphore, Slab, StatusCode } from '../../base/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { Exchange } from '../exchange.ts'
import type { ApiLimits } from '../limits.ts'
import type { RequestContext } from '../open-call.ts'
import type { AccessControl } from './admit.ts'

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
