import type { Readable } from 'node:stream'
import { Agent } from 'undici'
import { createGuardedConnector, type ResolveAll, resolveWithSystem } from './connector.ts'
import type { HttpHeaders } from './headers.ts'
import type { EgressPolicy } from './policy.ts'
import { send, stream } from './send.ts'

/** One call to a third party. */
export interface EgressRequest {
  /** Upper case. CONNECT and TRACE are refused. */
  readonly method: string
  readonly url: string
  /** Connection headers (`host`, `content-length`, `transfer-encoding`, …) are set by the client; given ones are dropped. */
  readonly headers: HttpHeaders
  readonly body?: string | Uint8Array
  readonly signal?: AbortSignal
  /** For everything together: waiting for a connection, redirects, and the last byte of the body. */
  readonly timeoutMs: number
  /** Applies to the body as sent and as decoded. */
  readonly maxResponseBytes: number
  /** How many redirects are followed, 0 to 3; default 0, which answers the redirect itself. */
  readonly redirects?: number
}

/** A whole answer, of any status. */
export interface EgressResponse {
  readonly status: number
  /** Names in lower case, repeated ones joined by a comma; without `set-cookie`, and without `content-encoding` once decoded. */
  readonly headers: HttpHeaders
  /** Content-decoded. */
  readonly body: Uint8Array
  /** Where the answer came from, after redirects. */
  readonly url: string
}

/** A call whose bodies are too large to hold. */
export interface EgressStreamRequest extends Omit<EgressRequest, 'body'> {
  /**
   * A body that is read as it comes is released when the call ends, however it ends: destroyed, or its iterator returned. One
   * that was not begun, because the request was refused or nobody answered the dial, stays its owner's.
   */
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>
  /** Of a body that is read as it comes, where it is known: announced as `content-length`, and held to. */
  readonly bodyBytes?: number
  /** The call fails when no byte of either body has moved for so long. Default: only `timeoutMs` counts. */
  readonly idleTimeoutMs?: number
}

/** An answer whose body arrives in pieces, exactly as sent: not content-decoded, `content-encoding` kept. */
export interface EgressStreamResponse {
  readonly status: number
  readonly headers: HttpHeaders
  /** Read it to the end, leave the loop, or destroy it; each releases the connection. Fails with the failures of `send`. */
  readonly body: Readable
}

/**
 * The only way out of the product.
 *
 * Failures by reason: EGRESS_BLOCKED (the address policy refuses the URL, what its name resolves to, or a redirect),
 * UPSTREAM_UNREACHABLE, UPSTREAM_INVALID_RESPONSE (not HTTP, too large, wrongly encoded, too many redirects),
 * DEADLINE_EXCEEDED, CANCELLED (the signal), INVALID_FIELD (method or header that cannot be sent). Any status that
 * arrives is an answer, not a failure.
 */
export interface HttpClient extends AsyncDisposable {
  send(request: EgressRequest): Promise<EgressResponse>
  stream(request: EgressStreamRequest): Promise<EgressStreamResponse>
}

/** What a client is built from. */
export interface HttpClientOptions {
  readonly policy: EgressPolicy
  /** How names become addresses; default the machine's resolver. */
  readonly resolveAll?: ResolveAll
  readonly connectTimeoutMs?: number
  /** Further requests to the origin wait for a free connection. */
  readonly connectionsPerOriginMax?: number
}

const CONNECT_TIMEOUT_MS = 10_000
const CONNECTIONS_PER_ORIGIN_MAX = 256
const RESPONSE_HEADER_BYTES_MAX = 32 * 1024
/** Idle connections close before servers that keep them for 5 s do; a server's own `keep-alive` header goes first. */
const KEEP_ALIVE_MS = 4_000
const KEEP_ALIVE_MAX_MS = 60_000

/** Opens a client with its own connection pools; dispose of it to close them. Proxies of the environment are ignored. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { policy } = options
  const agent = new Agent({
    connect: createGuardedConnector({
      policy,
      resolveAll: options.resolveAll ?? resolveWithSystem,
      connectTimeoutMs: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    }),
    allowH2: false,
    connections: options.connectionsPerOriginMax ?? CONNECTIONS_PER_ORIGIN_MAX,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
    maxHeaderSize: RESPONSE_HEADER_BYTES_MAX,
    // The deadline of the exchange covers both.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return {
    send: (request) => send({ agent, policy }, request),
    stream: (request) => stream({ agent, policy }, request),
    [Symbol.asyncDispose]: () => agent.destroy(),
  }
}
