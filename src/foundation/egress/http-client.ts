import { Agent, EnvHttpProxyAgent } from 'undici'
import { releaseSlotWhile } from '../base/request-scope.ts'
import { isInRanges, parseRange } from './address.ts'
import { type EgressPolicy, hostOf } from './address-policy.ts'
import type { ConnectTo } from './connect-to.ts'
import { ConnectionSlots } from './connection-slots.ts'
import { assertAllowedName, createGuardedConnector, type ResolveAll, resolveWithSystem } from './connector.ts'
import type { EgressRequest, EgressStreamRequest } from './request.ts'
import type { EgressResponse, EgressStreamResponse } from './response.ts'
import { send, stream } from './send.ts'

/**
 * The HTTP client of every outbound request.
 *
 * Failures by reason: EGRESS_BLOCKED (the address policy rejects the URL, an address that its name resolves to, or a
 * redirect), RATE_LIMITED (too many requests of its owner wait for a connection), UPSTREAM_UNREACHABLE, UPSTREAM_INVALID_RESPONSE (not HTTP, too large, wrongly encoded, too many redirects),
 * DEADLINE_EXCEEDED, CANCELLED (the signal), INVALID_FIELD (method or header that cannot be sent). A response of any status
 * is no failure. Requests of clients leave their slot while they wait for an answer.
 */
export interface HttpClient extends AsyncDisposable {
  send(request: EgressRequest): Promise<EgressResponse>
  stream(request: EgressStreamRequest): Promise<EgressStreamResponse>
}

/** Proxies that outbound calls go through, as their variables say; `''`: none. A URL has the user and password of its proxy. */
interface ForwardProxies {
  /** Calls with TLS, in a tunnel (CONNECT, RFC 9110 §9.3.6). */
  readonly httpsProxy: string
  /** Calls without, whose requests the proxy repeats; those with TLS too where they have none of their own. */
  readonly httpProxy: string
  /** Hosts that are called directly: `name[:port]` and all names below it, CIDR ranges of literal addresses, `*`, separated by commas. */
  readonly noProxy: string
}

/** Options of `createHttpClient`. */
export interface HttpClientOptions {
  readonly policy: EgressPolicy
  /** Name resolution; default: the resolver of the operating system. */
  readonly resolveAll?: ResolveAll
  readonly connectTimeoutMs?: number
  /** Addresses that are connected to instead of those of a name. Absent: none. */
  readonly connectTo?: ConnectTo
  /** Forward proxies. Absent: connections are made directly. */
  readonly proxies?: ForwardProxies
  /** Pool size per origin; further requests wait for a free connection, owners in turns. */
  readonly connectionsPerOriginMax?: number
  /** Connections to all origins. */
  readonly connectionsMax?: number
}

const CONNECT_TIMEOUT_MS = 10_000
const CONNECTIONS_PER_ORIGIN_MAX = 512
const CONNECTIONS_MAX = 4_096
const RESPONSE_HEADER_BYTES_MAX = 32 * 1024
/** Keep-alive shorter than the 5 s of common servers; a `keep-alive` header of the server takes precedence. */
const KEEP_ALIVE_MS = 4_000
const KEEP_ALIVE_MAX_MS = 60_000

/**
 * Creates a client with its own connection pools; dispose of it to close them.
 *
 * A proxy resolves names itself, so that the policy is asked about what they resolve to here, before each request: a name that only the
 * proxy can resolve is left to its rules.
 */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { policy } = options
  const perOriginMax = options.connectionsPerOriginMax ?? CONNECTIONS_PER_ORIGIN_MAX
  const connections = new ConnectionSlots({ perOriginMax, max: options.connectionsMax ?? CONNECTIONS_MAX })
  const resolveAll = options.resolveAll ?? resolveWithSystem
  const connectTimeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS
  const pools = {
    connect: createGuardedConnector({
      policy,
      resolveAll,
      connectTimeoutMs,
      connectTo: options.connectTo ?? (() => undefined),
    }),
    allowH2: false,
    connections: perOriginMax,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
    maxHeaderSize: RESPONSE_HEADER_BYTES_MAX,
    // ResponseHandler enforces the deadline of the whole call.
    headersTimeout: 0,
    bodyTimeout: 0,
  } as const
  const { proxies } = options
  const isProxied = proxies !== undefined && (proxies.httpsProxy !== '' || proxies.httpProxy !== '')
  const agent = new Agent(pools)
  const proxied = isProxied ? new EnvHttpProxyAgent({ ...pools, ...proxies, connectTimeout: connectTimeoutMs }) : agent
  // undici takes names alone.
  const entries = (proxies?.noProxy ?? '').split(/[,\s]+/)
  const ranges = entries.map(parseRange).filter((range) => range !== undefined)
  const guarded = {
    agentOf: (url: URL) => (ranges.length > 0 && isInRanges(hostOf(url), ranges) ? agent : proxied),
    assertAllowed: isProxied ? (url: URL) => assertAllowedName(policy, resolveAll, url) : undefined,
    policy,
    connections,
  }
  return {
    send: (request) => releaseSlotWhile(() => send(guarded, request)),
    stream: (request) => releaseSlotWhile(() => stream(guarded, request)),
    async [Symbol.asyncDispose]() {
      for (const each of new Set([agent, proxied])) await each.destroy()
    },
  }
}
