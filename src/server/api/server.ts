import { type AddressInfo, BlockList } from 'node:net'
import type { DescFile } from '@bufbuild/protobuf'
import { file_google_rpc_error_details } from '../../../gen/google/rpc/error_details_pb.ts'
import { type Clock, Failure } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import { FairSemaphore, FairSlots } from '../../foundation/fair/index.ts'
import type { Logger } from '../../foundation/telemetry/index.ts'
import type { CorsOrigins } from './cors.ts'
import { createDispatch } from './dispatch.ts'
import type { Exchange, Observation, ServerContext } from './exchange.ts'
import { createHttpRouter, type HttpRoute } from './http/routes.ts'
import { type ApiLimits, DEFAULT_LIMITS } from './limits.ts'
import { BoundPort } from './listener/bound-port.ts'
import { Listener } from './listener/listener.ts'
import type { TlsKeys } from './listener/protocol-detection.ts'
import { type ManagementDeps, managementRoute } from './mcp-management/route.ts'
import { precompileRules } from './messages/rules.ts'
import { createPathSuggester } from './near-path.ts'
import { OpenRequests } from './open-requests.ts'
import { compileOperations, type ServiceDefinition } from './operation.ts'
import type { AccessControl } from './pipeline/access-control.ts'
import { RateLimiter } from './pipeline/rate-limiter.ts'
import { type FindEndedAccounts, Reauthenticator } from './pipeline/reauthenticator.ts'
import { TokenLookUps } from './pipeline/token-look-ups.ts'
import { createRestRouter } from './rest/rest.ts'
import { createConnectHandlers } from './rpc/connect-node.ts'
import { RpcServer } from './rpc/serve-rpc.ts'
import { type Health, healthService } from './services/health.ts'
import { reflectionServices } from './services/reflection.ts'

/** The parts of an API server. */
export interface ApiServerOptions {
  readonly services: readonly ServiceDefinition[]
  readonly authenticator: AccessControl['authenticator']
  /** Authenticates link tokens, for the operations that accept them; absent: no link token is valid. */
  readonly authenticateLink?: AccessControl['authenticateLink']
  /** Keeps callers with limits to their accounts; absent: there are none. */
  readonly assertWithinLimits?: AccessControl['assertWithinLimits']
  /** Ends requests through accounts that were deleted or disabled; absent: none ends. */
  readonly findEndedAccounts?: FindEndedAccounts
  readonly clock: Clock
  readonly logger: Logger
  /** Reported by `grpc.health.v1`; a drain turns it off. */
  readonly health: Health
  /** Limits that differ from `DEFAULT_LIMITS`. */
  readonly limits?: Partial<ApiLimits>
  /** Files whose types occur in responses although no service names them; error details are always included. */
  readonly reflectionFiles?: readonly DescFile[]
  /** Plain HTTP endpoints beside the contract. */
  readonly extraRoutes?: readonly HttpRoute[]
  /** Serves the operations of the contract as tools; absent: not. */
  readonly management?: ManagementDeps
  /** Maps errors of other layers; unknown ones are INTERNAL. */
  readonly translateError?: (error: unknown) => Failure | undefined
  /** The database of the audit log; absent: there is none. */
  readonly auditDatabase?: Database
  /** Called when a drain stops accepting requests, to end long polls. */
  readonly onClosing?: () => void
  /** Called with every completed request. */
  readonly observe?: ((observation: Observation) => void) | undefined
  /** Path of the public address, without a trailing slash; requests come with or without it. None by default. */
  readonly basePath?: string
  /** Peers whose `X-Forwarded-For` or `Forwarded` names the client; none by default. */
  readonly trustedProxies?: BlockList
  /** Serves TLS instead of plaintext. */
  readonly tls?: TlsKeys
  /** Origins whose pages may call the API from a browser; absent: none. */
  readonly corsOrigins?: CorsOrigins
}

/** A server that may be listening. */
export interface ApiServer extends AsyncDisposable {
  /** The registry of HTTP endpoints beside the contract. */
  readonly routes: readonly HttpRoute[]
  /** Resolves with the address once connections are accepted. Port 0 takes any free one. */
  listen(host: string, port: number): Promise<AddressInfo>
  /** The same on a port that is bound already. */
  listenOn(port: BoundPort): Promise<AddressInfo>
  /** Uses a renewed certificate for the connections from now on; without effect in plaintext. */
  replaceTlsKeys(keys: TlsKeys): void
  /**
   * Graceful shutdown: health is NOT_SERVING; after `drainGraceMs` no new request is accepted, calls in progress finish,
   * streams end with SHUTTING_DOWN after `streamDrainMs`, everything else at the deadline.
   */
  drain(deadlineMs: number): Promise<void>
}

/** Builds the API on one port: every protocol, every service, health, reflection and the extra routes. */
export function createApiServer(options: ApiServerOptions): ApiServer {
  const server = createServerContext(options)
  const { limits, accessControl } = server
  const services = [...options.services, healthService(options.health)]
  const details = [file_google_rpc_error_details, ...(options.reflectionFiles ?? [])]
  services.push(
    ...reflectionServices(
      services.map(({ desc }) => desc),
      details,
    ),
  )
  const operations = compileOperations(services)
  const rest = createRestRouter(operations.values())
  const httpRoutes = [
    ...(options.extraRoutes ?? []),
    ...(options.management === undefined ? [] : [managementRoute(options.management, operations)]),
  ]
  const dispatch = createDispatch(server, {
    operations,
    rest,
    http: createHttpRouter(httpRoutes),
    suggestPath: createPathSuggester(operations, rest.patterns, httpRoutes),
    rpc: new RpcServer(createConnectHandlers(operations.values(), limits)),
    corsOrigins: options.corsOrigins ?? [],
  })
  const listener = new Listener(dispatch, server.openExchanges, limits, options.tls)
  const started = new DisposableStack()
  const listenOn = async (port: BoundPort) => {
    const address = await listener.listen(port)
    started.use(precompileRules([...operations.values()].map(({ input }) => input)))
    return address
  }
  return {
    routes: httpRoutes,
    listen: async (host, port) => await listenOn(await BoundPort.bind(host, port)),
    listenOn,
    replaceTlsKeys: (keys) => listener.replaceTlsKeys(keys),
    async drain(deadlineMs) {
      const graceMs = Math.min(limits.drainGraceMs, deadlineMs)
      options.health.startDrain()
      listener.endReuse()
      if (graceMs > 0) await options.clock.sleep(graceMs)
      options.onClosing?.()
      await close(server, listener, deadlineMs - graceMs)
    },
    async [Symbol.asyncDispose]() {
      started[Symbol.dispose]()
      accessControl.reauthenticator[Symbol.dispose]()
      await listener[Symbol.asyncDispose]()
    },
  }
}

function createServerContext(options: ApiServerOptions): ServerContext {
  const { authenticator, clock } = options
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const openExchanges = new OpenRequests<Exchange>()
  return {
    basePath: options.basePath ?? '',
    accessControl: {
      authenticator,
      authenticateLink: options.authenticateLink ?? (async () => undefined),
      assertWithinLimits: options.assertWithinLimits ?? (async () => {}),
      clock,
      tokenLimiter: new RateLimiter(limits.rateRequestsMax, limits.rateWindowMs),
      addressLimiter: new RateLimiter(limits.rateAddressMax, limits.rateWindowMs),
      tokenLookUps: new TokenLookUps(),
      trustedProxies: options.trustedProxies ?? new BlockList(),
      reauthenticator: new Reauthenticator(
        authenticator,
        clock,
        openExchanges,
        options.findEndedAccounts ?? (async () => new Map()),
      ),
    },
    limits,
    logger: options.logger,
    translateError: options.translateError,
    observe: options.observe,
    auditDatabase: options.auditDatabase,
    openExchanges,
    openStreams: new Set(),
    requestSlots: new FairSlots({
      slotsMax: limits.requestsActiveMax,
      waitingPerOwnerMax: limits.requestsWaitingMax,
      waitMsMax: limits.requestWaitMs,
      clock,
      rejection: 'too many requests of this environment run at once',
    }),
    bodyBytes: new FairSemaphore(limits.bodyBytesMax),
    answerBytes: new FairSemaphore(limits.answerBytesMax),
    streamSlots: new FairSemaphore(limits.streamsMax),
    publicStreamSlots: new FairSemaphore(limits.publicStreamsMax),
    unauthenticatedBytes: new FairSemaphore(limits.unauthenticatedBytesMax),
  }
}

async function close({ openStreams, limits }: ServerContext, listener: Listener, deadlineMs: number): Promise<void> {
  const endStreams = setTimeout(
    () => {
      const failure = new Failure('SHUTTING_DOWN', 'the server is shutting down; connect again')
      for (const context of openStreams) context.interrupt(failure)
    },
    Math.min(limits.streamDrainMs, deadlineMs),
  )
  await listener.close(deadlineMs)
  clearTimeout(endStreams)
}
