import { readFileSync } from 'node:fs'
import product from '../package.json' with { type: 'json' }
import {
  type AccountDependencies,
  accountRedactor,
  createAccountReader,
  createCredentialRefresher,
  createTokenHttp,
  createTokenProvider,
  findEndedAccounts,
  getSyncableAccount,
  installationAccounts,
} from './accounts/index.ts'
import {
  type ApiServer,
  BoundPort,
  createApiServer,
  createProxyCalls,
  createServices,
  customRoute,
  documentRoute,
  Health,
  healthzRoutes,
  inboundWebhookRoutes,
  mcpRoute,
  proxyRoute,
  SCHEDULER,
  type ServiceDeps,
  type TlsKeys,
  unifiedRoute,
} from './api/index.ts'
import { type Clock, type JsonObject, systemClock } from './base/index.ts'
import type { Config } from './config.ts'
import { connectPageRoutes } from './connect-page/index.ts'
import { createContents } from './contents.ts'
import { ClaimLongPolls } from './daemon-service/index.ts'
import { mapDatabaseError } from './database/index.ts'
import { findAddressViolations, integrationConfigSchema } from './definitions/index.ts'
import { createEgressPolicy, createHttpClient, findUrlViolation, type HttpClient } from './egress/index.ts'
import { createEvaluator, type Evaluator } from './expressions/index.ts'
import { createReceiver } from './inbound-webhooks/index.ts'
import { createDefinitionCache, createIntegrationCache, type DefinitionCache } from './integrations/index.ts'
import {
  authenticateLinkToken,
  callbackUriOf,
  createCatalogCache,
  createFormOptionsCache,
  createLinkSessionPort,
} from './link-sessions/index.ts'
import { createContextValueStore, type ObjectStore } from './object-store/index.ts'
import { openObjectStore } from './objects.ts'
import { type Observability, SCHEDULER_PROBLEM } from './observability.ts'
import { type ApiProxy, createProxy } from './proxy/index.ts'
import { PublicAddress } from './public-address.ts'
import { createCallLimiter } from './rate-limits/index.ts'
import { RunQueue, RunWatch, triggersOfDeleted } from './runs/index.ts'
import { CATCH_UP, type CatchUpPolicy } from './schedules/index.ts'
import type { Storage } from './storage.ts'
import { type ArgsRules, assertMapped, checkTriggerResources, resolveArgs } from './syncs/index.ts'
import { describeError, type Logger } from './telemetry/index.ts'
import { createAuthenticator } from './tenancy/index.ts'
import { createToolEndpoint, createToolLoader } from './tool-servers/index.ts'
import { createUnifiedMappings, type UnifiedMappings } from './unified-models/index.ts'
import {
  createAccountSubscriptions,
  InboundActivity,
  isSubscribing,
  withoutReports,
} from './webhook-subscriptions/index.ts'

/** What API and worker of a process are built from. */
export interface ProcessDeps {
  readonly config: Config
  readonly storage: Storage
  readonly logger: Logger
  /** Metrics and monitoring; absent in commands and tests that need none. */
  readonly observability?: Pick<Observability, 'metrics' | 'schedulerMonitor' | 'onHealthChange'> | undefined
  /** Absent: that of the system. */
  readonly clock?: Clock | undefined
}

/** What the API of a process is built from. */
export interface ApiDeps extends ProcessDeps {
  readonly tls?: TlsKeys | undefined
  /** Called when a webhook was received that is to be processed, for a worker in the same process. */
  readonly onWebhookReceived?: () => void
}

/** The dependencies of one process, each built once. */
export interface Container extends ServiceDeps, AsyncDisposable {
  readonly clock: Clock
  readonly http: HttpClient
  readonly evaluator: Evaluator
  readonly proxy: ApiProxy
  readonly accounts: AccountDependencies
  /** For requests about subscriptions. */
  readonly subscriptionProxy: Pick<ApiProxy, 'runAction'>
  readonly inboundActivity: InboundActivity
  readonly definitions: DefinitionCache
  readonly unifiedMappings: UnifiedMappings
  readonly queue: RunQueue
  readonly objects: ObjectStore
  readonly publicAddress: PublicAddress
}

/** How far back missed ticks become runs of their own. */
export function catchUpOf({ catchupWindowSeconds }: Config): CatchUpPolicy {
  return { ...CATCH_UP, windowMs: catchupWindowSeconds * 1_000 }
}

/** Builds everything between the database and the API or worker. */
export function createContainer({ config, storage, logger, clock = systemClock }: ProcessDeps): Container {
  const { database, secrets } = storage
  const policy = createEgressPolicy({ allow: config.egressAllow })
  const http = createHttpClient({ policy })
  const evaluator = createEvaluator({
    clock,
    onQuarantine: ({ owner, hash }) =>
      logger.warn({ owner, hash }, 'an expression is blocked: it kept killing its sandbox'),
  })
  const publicAddress = new PublicAddress(config)
  const publicUrl = () => publicAddress.url
  const definitions = createDefinitionCache(secrets, () => ({
    redirect_uri: callbackUriOf({ publicUrl }),
    public_url: publicUrl(),
  }))
  const objects = openObjectStore(config)
  const contextValues = createContextValueStore(secrets, objects)
  // Token requests made by an action go through an engine without credential refresh, or a 401 there would recurse.
  const engine = createProxy({ http, evaluator, clock })
  const tokenDeps = {
    database,
    secrets,
    definitions,
    contextValues,
    http: createTokenHttp({ http, database, clock }),
    evaluator,
    clock,
    engine,
    random: Math.random,
  }
  const tokens = createTokenProvider(tokenDeps)
  const accounts = {
    ...tokenDeps,
    tokens,
    reader: createAccountReader(database),
    integrations: createIntegrationCache(),
    triggers: triggersOfDeleted,
    linkSessions: createLinkSessionPort({ definitions }),
    subscriptions: createAccountSubscriptions({ definitions, proxy: engine }),
  }
  const integrations = {
    secrets,
    checkUrls: (definition: JsonObject, path: string) =>
      findAddressViolations(definition, path, (url) => findUrlViolation(policy, url)),
    accounts: installationAccounts(accounts),
  }
  const queue = new RunQueue({ database, random: Math.random })
  const evaluate = (expression: string, input: JsonObject) => evaluator.evaluate(expression, input)
  const unifiedMappings = createUnifiedMappings({ clock })
  const runs = {
    queue,
    resolveArgs: (rules: ArgsRules, given: JsonObject) => resolveArgs(evaluate, rules, given),
    assertMapped: assertMapped.bind(undefined, unifiedMappings),
  }
  const accountPort = createCredentialRefresher({
    ...accounts,
    onReportError: (error) =>
      logger.warn(describeError(error), 'the account status that a call reported could not be stored'),
  })
  const callLimiter = createCallLimiter({
    database,
    clock,
    random: Math.random,
    onWriteError: (error) =>
      logger.warn(describeError(error), 'a rate limit reported by an upstream could not be shared'),
  })
  const proxy = createProxy({
    http,
    evaluator,
    clock,
    credentialRefresher: accountPort,
    accountReporter: accountPort,
    callLimiter,
    sealer: secrets.sealer,
  })
  const calls = createProxyCalls(accounts, proxy, clock)
  return {
    database,
    secrets,
    clock,
    http,
    evaluator,
    definitions,
    unifiedMappings,
    subscriptionProxy: createProxy({
      http,
      evaluator,
      clock,
      credentialRefresher: accountPort,
      accountReporter: withoutReports(accountPort),
      callLimiter,
    }),
    inboundActivity: new InboundActivity(database),
    queue,
    objects,
    accounts,
    links: {
      database,
      secrets,
      accounts,
      proxy,
      formOptions: createFormOptionsCache(clock),
      catalog: createCatalogCache(definitions),
      publicUrl,
    },
    publicAddress,
    integrations,
    runs,
    proxy,
    calls,
    toolServers: { clock, loader: createToolLoader({ definitions, unifiedMappings }), publicUrl },
    unifiedCalls: { ...calls, database, mappings: unifiedMappings, unified: { proxy, evaluator } },
    daemons: {
      database,
      mappings: unifiedMappings,
      queue,
      longPolls: new ClaimLongPolls({ database, clock }),
      loadAccount: (environmentId, id) => getSyncableAccount(accounts, database.pool, environmentId, id),
      redactor: (environmentId, id) => accountRedactor(accounts, environmentId, id),
      onDefect: (error, runId) =>
        logger.error({ run_id: runId, ...describeError(error) }, 'a run could not be assigned to a daemon'),
    },
    runWatch: new RunWatch({ database, clock }),
    webhooks: { secrets, clock, findUrlViolation: (url) => findUrlViolation(policy, url) },
    triggers: {
      ...runs,
      database,
      clock,
      minTickGapSeconds: config.minTickGapSeconds,
      catchUp: catchUpOf(config),
      checkResources: checkTriggerResources.bind(undefined, unifiedMappings),
    },
    contents: createContents(integrations),
    async [Symbol.asyncDispose]() {
      await evaluator[Symbol.asyncDispose]()
      await http[Symbol.asyncDispose]()
      await objects[Symbol.asyncDispose]()
    },
  }
}

/** The receiver of inbound webhooks. */
function createWebhookReceiver(
  { database, accounts, evaluator, http, clock, publicAddress }: Container,
  onReceived: () => void,
) {
  const publicUrl = () => publicAddress.url
  return createReceiver({
    database,
    accounts,
    evaluator,
    http,
    clock,
    publicUrl,
    onReceived,
    isSubscribing: async (tx, { environmentId, integratedAccountId: id }) =>
      id !== undefined && (await isSubscribing(tx, { environmentId, id })),
  })
}

/** The API of one process. */
export interface Api extends Pick<ApiServer, 'routes'>, AsyncDisposable {
  /**
   * Resolves with the address clients use once connections are accepted.
   *
   * @param port the one that is bound already; absent: it is bound now
   */
  listen(port?: BoundPort): Promise<{ readonly url: string }>
  /** Stops within the drain time: requests in flight finish. */
  drain(): Promise<void>
}

/** A document that is generated from the contract. */
function generatedDocument(name: string): JsonObject {
  return JSON.parse(readFileSync(new URL(`../gen/${name}`, import.meta.url), 'utf8'))
}

/** Builds the API: every service of the contract and the documents that describe it. */
export function createApi(deps: ApiDeps): Api {
  const { config, storage, logger, observability, tls, onWebhookReceived = () => undefined } = deps
  const domain = createContainer(deps)
  const services = createServices(domain)
  const authenticator = createAuthenticator({
    database: storage.database,
    clock: systemClock,
    onWriteError: (error) => logger.warn(describeError(error), 'the last use of a token could not be stored'),
  })
  const toolEndpoint = createToolEndpoint({
    ...domain,
    loader: domain.toolServers.loader,
    observe: observability?.metrics?.observeToolCall,
    onWriteError: (error) => logger.warn(describeError(error), 'the record of a call of a tool could not be stored'),
  })
  const mcp = {
    version: product.version,
    sealer: domain.secrets.sealer,
    openApi: () => generatedDocument('openapi.json'),
    publicUrl: domain.toolServers.publicUrl,
    corsOrigins: config.corsOrigins,
  }
  const health = new Health([...services.map(({ desc }) => desc.typeName), SCHEDULER])
  observability?.schedulerMonitor.subscribe((isStalled) =>
    health.set(SCHEDULER, isStalled ? SCHEDULER_PROBLEM : undefined),
  )
  observability?.onHealthChange((problem) => health.set('', problem))
  const server = createApiServer({
    services,
    authenticator,
    findEndedAccounts: (refs) => findEndedAccounts(domain.database.pool, refs),
    authenticateLink: authenticateLinkToken.bind(undefined, domain.links),
    clock: systemClock,
    logger,
    health,
    limits: {
      requestBytesMax: config.requestBytesMax,
      // One environment alone, which has half of the slots, leaves a quarter of the connections to others.
      requestsActiveMax: Math.ceil(config.databasePoolMax * 1.5),
      rateRequestsMax: config.rateLimitRequests,
      rateAddressMax: config.rateLimitAddress,
      deadlineMaxMs: config.deadlineMaxMs,
      drainGraceMs: config.drainGraceMs,
      deadlineDefaultMs: Math.min(config.deadlineMaxMs, 30_000),
    },
    management: mcp,
    extraRoutes: [
      documentRoute('/openapi.json', mcp.openApi),
      documentRoute('/asyncapi.json', () => generatedDocument('asyncapi.json')),
      documentRoute('/schemas/events.json', () => generatedDocument('events.json')),
      documentRoute('/schemas/integration-config.json', integrationConfigSchema),
      proxyRoute(domain.calls),
      customRoute(domain.calls),
      unifiedRoute(domain.unifiedCalls),
      mcpRoute({ endpoint: toolEndpoint, ...mcp }),
      ...inboundWebhookRoutes({ receive: createWebhookReceiver(domain, onWebhookReceived) }),
      ...connectPageRoutes(domain),
      ...healthzRoutes(health),
    ],
    onClosing: () => domain.daemons.longPolls.close(),
    trustedProxies: config.trustedProxies,
    translateError: mapDatabaseError,
    observe: observability?.metrics?.observeCall,
    corsOrigins: config.corsOrigins,
    ...(tls === undefined ? {} : { tls }),
  })
  return {
    routes: server.routes,
    async listen(bound) {
      const port = bound ?? (await BoundPort.bind(config.host, config.port))
      domain.publicAddress.setPort(port.address.port)
      await server.listenOn(port)
      return { url: domain.publicAddress.url }
    },
    drain: () => server.drain(config.drainMs),
    async [Symbol.asyncDispose]() {
      domain.daemons.longPolls.close()
      await server[Symbol.asyncDispose]()
      await authenticator[Symbol.asyncDispose]()
      await toolEndpoint[Symbol.asyncDispose]()
      await domain[Symbol.asyncDispose]()
    },
  }
}
