/** The limits of the API on requests. Sizes are bytes, times milliseconds; 0 disables a limit only where it says so. */
export interface ApiLimits {
  /** Largest request message, before and after decompression. */
  readonly requestBytesMax: number
  /** Largest request message of an RPC that needs no token, before and after decompression. */
  readonly publicRequestBytesMax: number
  /** Bytes of bodies whose senders are not authenticated; a client address may have half of them, or of what others leave. */
  readonly unauthenticatedBytesMax: number
  /** Longest silence while a request body arrives. */
  readonly bodyIdleMs: number
  /** Longest time a request body may take altogether, so that a client that sends a byte now and then cannot hold a connection. */
  readonly bodyTotalMs: number
  /** Longest time that a body streamed to an upstream may take. */
  readonly streamedBodyMs: number
  /** How long the rest of a request body is drained after an early response, before the connection is aborted. */
  readonly drainTimeoutMs: number
  /** Write timeout: longest wait for a client that does not read its response. */
  readonly writeTimeoutMs: number
  /** Deadline of a call whose client names none. Streams have none by default. */
  readonly deadlineDefaultMs: number
  /** Longer deadlines are accepted and cut to this. */
  readonly deadlineMaxMs: number
  /** Requests a token may send per `rateWindowMs`; 0: no limit. */
  readonly rateRequestsMax: number
  /** Requests without a token known to be valid that a client address may send per `rateWindowMs`; 0: no limit. */
  readonly rateAddressMax: number
  readonly rateWindowMs: number
  /** Requests that are worked on at the same time; environments share them, and one alone has half (see `FairSlots`). */
  readonly requestsActiveMax: number
  /** Requests of one environment that wait for their turn. */
  readonly requestsWaitingMax: number
  /** Longest wait for a turn; what has waited longer is rejected, to be sent again. */
  readonly requestWaitMs: number
  /** Memory for large bodies of requests; environments share it, and one alone has half. */
  readonly bodyBytesMax: number
  /** Memory for answers that clients have yet to read; shared as that for bodies. */
  readonly answerBytesMax: number
  /** How long a new connection may take until its HTTP version is known, or for its TLS handshake. */
  readonly protocolDetectionMs: number
  /** How long request headers may take (HTTP/1.1). */
  readonly headersMs: number
  /** How long an idle HTTP/1.1 connection is kept. */
  readonly keepAliveMs: number
  /** How long an idle HTTP/2 connection is kept. */
  readonly sessionIdleMs: number
  readonly connectionsMax: number
  readonly headerBytesMax: number
  /** Concurrent streams of one HTTP/2 connection. */
  readonly streamsPerConnectionMax: number
  /** Streams and streamed bodies open at the same time; environments share them (see `FairSemaphore`). */
  readonly streamsMax: number
  /** Streams without a token open at the same time; client addresses share them. */
  readonly publicStreamsMax: number
  /** How long requests are still accepted when a drain has begun, so that load balancers can notice. */
  readonly drainGraceMs: number
  /** How long streams continue when a drain has begun; unary calls may use the whole drain. */
  readonly streamDrainMs: number
}

/** The limits where nothing else is configured. */
export const DEFAULT_LIMITS: ApiLimits = {
  requestBytesMax: 4 * 1024 * 1024,
  publicRequestBytesMax: 64 * 1024,
  unauthenticatedBytesMax: 64 * 1024 * 1024,
  bodyIdleMs: 10_000,
  bodyTotalMs: 60_000,
  streamedBodyMs: 3_600_000,
  drainTimeoutMs: 2_000,
  writeTimeoutMs: 30_000,
  deadlineDefaultMs: 30_000,
  deadlineMaxMs: 600_000,
  rateRequestsMax: 500,
  rateAddressMax: 100,
  rateWindowMs: 10_000,
  requestsActiveMax: 24,
  requestsWaitingMax: 1_000,
  requestWaitMs: 10_000,
  bodyBytesMax: 256 * 1024 * 1024,
  answerBytesMax: 256 * 1024 * 1024,
  protocolDetectionMs: 10_000,
  headersMs: 10_000,
  keepAliveMs: 75_000,
  sessionIdleMs: 600_000,
  connectionsMax: 10_000,
  headerBytesMax: 16 * 1024,
  streamsPerConnectionMax: 256,
  streamsMax: 4_000,
  publicStreamsMax: 500,
  drainGraceMs: 0,
  streamDrainMs: 5_000,
}

/** Messages from this size on are parsed, decoded, validated and handled in turns of the event loop of their own. */
export const LARGE_MESSAGE_BYTES = 64 * 1024
