import { readFileSync } from 'node:fs'
import product from '../../package.json' with { type: 'json' }
import { integrationConfigSchema } from '../engine/definitions/index.ts'
import { mapDatabaseError } from '../foundation/database/index.ts'
import type { JsonObject } from '../foundation/json/index.ts'
import { describeError, ThrottledLog } from '../foundation/telemetry/index.ts'
import { findEndedAccounts } from '../platform/accounts/index.ts'
import { authenticateLinkToken } from '../platform/links/index.ts'
import { isSubscribing } from '../platform/subscriptions/index.ts'
import { createAuthenticator } from '../platform/tenancy/index.ts'
import { createToolEndpoint } from '../tools/servers/index.ts'
import { createReceiver, type ObserveInbound } from '../webhooks/inbound/index.ts'
import { customRoute } from './api/http/custom.ts'
import { healthzRoutes, SCHEDULER } from './api/http/health.ts'
import { inboundWebhookRoutes } from './api/http/inbound-webhook.ts'
import { mcpRoute } from './api/http/mcp.ts'
import { proxyRoute } from './api/http/proxy.ts'
import { documentRoute } from './api/http/routes.ts'
import { unifiedRoute } from './api/http/unified.ts'
import { BoundPort } from './api/listener/bound-port.ts'
import type { TlsKeys } from './api/listener/protocol-detection.ts'
import { type ApiServer, createApiServer } from './api/server.ts'
import { Health } from './api/services/health.ts'
import { createServices } from './api/services/registry.ts'
import { assertRequestWithinLimits } from './api/services/token-limits.ts'
import type { Config } from './config/config.ts'
import type { Container, ProcessDeps } from './container.ts'
import { SCHEDULER_PROBLEM } from './observability.ts'
import { connectPageRoutes } from './page/routes.ts'

/** What the API of a process is built from. */
export interface ApiDeps extends ProcessDeps {
  readonly tls?: TlsKeys | undefined
  /** Called when a webhook was received that is to be processed, for a worker in the same process. */
  readonly onWebhookReceived?: () => void
}

/** The receiver of inbound webhooks. */
function createWebhookReceiver(
  { database, accounts, evaluator, http, clock, publicUrl }: Container,
  onReceived: () => void,
  observe: ObserveInbound,
) {
  return createReceiver({
    database,
    accounts,
    evaluator,
    http,
    clock,
    publicUrl,
    onReceived,
    observe,
    isSubscribing: async (tx, { environmentId, integratedAccountId: id }) =>
      id !== undefined && (await isSubscribing(tx, { environmentId, id })),
  })
}

const LOGGED_REASON_LENGTH_MAX = 200

/** Counts received webhooks, and logs those that are rejected: a line a minute for each installation. */
function observeInbound({ logger, observability }: ApiDeps): ObserveInbound {
  const rejected = new ThrottledLog(logger, 'a webhook was rejected')
  return (state, { environmentId, environmentIntegrationId, integration }, reason) => {
    observability?.metrics?.observeInboundEvent(state)
    if (state !== 'rejected') return
    rejected.warn(environmentIntegrationId, {
      environment_id: environmentId,
      environment_integration_id: environmentIntegrationId,
      integration: integration.name,
      reason: reason?.slice(0, LOGGED_REASON_LENGTH_MAX),
    })
  }
}

/** The API of one process. */
export interface Api extends Pick<ApiServer, 'routes' | 'replaceTlsKeys'>, AsyncDisposable {
  /**
   * Resolves with the address clients use once connections are accepted.
   *
   * @param port the one that is bound already; absent: it is bound now
   */
  listen(port?: BoundPort): Promise<{ readonly url: string }>
  /** Stops within the time, ms: requests in flight finish. */
  drain(deadlineMs: number): Promise<void>
}

/** A document that is generated from the contract. */
function generatedDocument(name: string): JsonObject {
  return JSON.parse(readFileSync(new URL(`../../gen/${name}`, import.meta.url), 'utf8'))
}

/** Builds the API: every service of the contract and the documents that describe it. */
export function createApi(deps: ApiDeps): Api {
  const { config, container, logger, observability, tls } = deps
  const services = createServices(container)
  container.callLog.onDrop = observability?.metrics?.observeCallLogDrop
  container.callLog.onRequest = observability?.metrics?.observeOutboundCall
  const authenticator = createAuthenticator({
    database: container.database,
    clock: container.clock,
    onWriteError: (error) => logger.warn(describeError(error), 'the last use of a token could not be stored'),
  })
  const health = createHealth(services, observability)
  const toolEndpoint = createToolEndpoint({
    ...container,
    loader: container.toolServers.loader,
    observe: observability?.metrics?.observeToolCall,
    onWriteError: (error) => logger.warn(describeError(error), 'the record of a call of a tool could not be stored'),
  })
  const management = {
    version: product.version,
    sealer: container.secrets.sealer,
    openApi: () => generatedDocument('openapi.json'),
    publicUrl: container.publicUrl,
    corsOrigins: config.corsOrigins,
  }
  const server = createApiServer({
    services,
    authenticator,
    findEndedAccounts: (refs) => findEndedAccounts(container.database.pool, refs),
    authenticateLink: authenticateLinkToken.bind(undefined, container.links),
    assertWithinLimits: assertRequestWithinLimits.bind(undefined, container),
    clock: container.clock,
    logger,
    health,
    limits: requestLimitsOf(config),
    management,
    extraRoutes: [
      ...extraRoutes(deps),
      mcpRoute({ endpoint: toolEndpoint, ...management }),
      ...healthzRoutes(health, observability?.findReadinessProblem),
    ],
    onClosing: () => container.daemons.longPolls.close(),
    basePath: container.publicAddress.basePath,
    trustedProxies: config.trustedProxies,
    translateError: mapDatabaseError,
    observe: observability?.metrics?.observeCall,
    auditDatabase: container.database,
    corsOrigins: config.corsOrigins,
    ...(tls === undefined ? {} : { tls }),
  })
  return {
    routes: server.routes,
    async listen(bound) {
      const port = bound ?? (await BoundPort.bind(config.host, config.port))
      container.publicAddress.setPort(port.address.port)
      await server.listenOn(port)
      return { url: container.publicUrl() }
    },
    replaceTlsKeys: (keys) => server.replaceTlsKeys(keys),
    drain: (deadlineMs) => server.drain(deadlineMs),
    async [Symbol.asyncDispose]() {
      container.daemons.longPolls.close()
      await server[Symbol.asyncDispose]()
      await authenticator[Symbol.asyncDispose]()
      await toolEndpoint[Symbol.asyncDispose]()
    },
  }
}

/** Health of each service; that of the process and of the scheduler follows the observability. */
function createHealth(services: ReturnType<typeof createServices>, observability: ApiDeps['observability']): Health {
  const health = new Health([...services.map(({ desc }) => desc.typeName), SCHEDULER])
  observability?.schedulerMonitor.subscribe((isStalled) =>
    health.set(SCHEDULER, isStalled ? SCHEDULER_PROBLEM : undefined),
  )
  observability?.onHealthChange((problem) => health.set('', problem))
  return health
}

function requestLimitsOf(config: Config) {
  return {
    requestBytesMax: config.requestBytesMax,
    // One environment alone, which has half of the slots, leaves a quarter of the connections to others.
    requestsActiveMax: Math.ceil(config.databasePoolMax * 1.5),
    rateRequestsMax: config.rateLimitRequests,
    rateAddressMax: config.rateLimitAddress,
    deadlineMaxMs: config.deadlineMaxMs,
    drainGraceMs: config.drainGraceMs,
    deadlineDefaultMs: Math.min(config.deadlineMaxMs, 30_000),
  }
}

/** The HTTP endpoints beside the contract: documents, calls through accounts, received webhooks, the connect page. */
function extraRoutes(deps: ApiDeps) {
  const { container, onWebhookReceived = () => undefined } = deps
  const receive = createWebhookReceiver(container, onWebhookReceived, observeInbound(deps))
  return [
    documentRoute('/openapi.json', () => generatedDocument('openapi.json')),
    documentRoute('/asyncapi.json', () => generatedDocument('asyncapi.json')),
    documentRoute('/schemas/events.json', () => generatedDocument('events.json')),
    documentRoute('/schemas/integration-config.json', integrationConfigSchema),
    proxyRoute(container.calls),
    customRoute(container.calls),
    unifiedRoute(container.unifiedCalls),
    ...inboundWebhookRoutes({ receive }),
    ...connectPageRoutes(container),
  ]
}
