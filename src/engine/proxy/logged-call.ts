import type { RequestTimings } from '../../foundation/egress/index.ts'
import type { CallCause } from './request.ts'

/** What became of a request. */
export const CALL_CLASSES = [
  'success',
  'rate_limited',
  /** The third party answered with an error, or with what the definition takes for one. */
  'error',
  /** No answer in time. */
  'timeout',
  /** No connection, or it was lost. */
  'network_error',
  /** The answer cannot be read. */
  'invalid_response',
  /** The address policy does not let it be sent. */
  'blocked',
  /** It was ended here: its caller is gone, or its run was stopped. */
  'cancelled',
] as const

export type CallClass = (typeof CALL_CLASSES)[number]

/** Headers and bodies, secrets masked and cut. */
export interface LoggedContent {
  readonly requestHeaders: Readonly<Record<string, string>>
  readonly requestBody: string
  readonly responseHeaders: Readonly<Record<string, string>>
  readonly responseBody: string
}

/** One request to a third party, secrets masked. */
export interface LoggedCall extends Omit<RequestTimings, 'remoteAddress'> {
  /** UUIDv7 of the moment at which it ended. */
  readonly id: string
  readonly environmentId: string
  readonly integratedAccountId: string | undefined
  readonly environmentIntegrationId: string | undefined
  /** For metrics; not stored. Absent where no definition is known. */
  readonly integrationName: string | undefined
  /** Of the definition; empty where no method describes the request. */
  readonly resource: string
  readonly method: string
  readonly httpMethod: string
  /** Without authorization. */
  readonly url: string
  /** Undefined when nothing was received. */
  readonly status: number | undefined
  readonly class: CallClass
  readonly errorMessage: string | undefined
  readonly startedAt: Date
  readonly totalMs: number
  /** From 1. */
  readonly attempt: number
  /** Of the bodies; of streamed ones as announced. */
  readonly bytesSent: number
  readonly bytesReceived: number
  /** The third party's own id of the request. */
  readonly upstreamRequestId: string | undefined
  readonly cause: CallCause
  /** The `x-request-id` of the request to this service that it was sent for. */
  readonly requestId: string | undefined
  /** Present of a request that failed or was sampled. */
  readonly content: LoggedContent | undefined
}

/** Where requests are logged. Absent: nowhere. */
export interface CallLog {
  /** Takes an entry without waiting for it to be stored. */
  record(call: LoggedCall): void
  /** Whether headers and bodies of this success are kept. */
  isSampled(): boolean
}
