import { findAddressViolations } from '../engine/definitions/index.ts'
import { createEvaluator, type Evaluator } from '../engine/expressions/index.ts'
import { type ApiProxy, createProxy } from '../engine/proxy/index.ts'
import { type Clock, systemClock } from '../foundation/base/index.ts'
import type { Database } from '../foundation/database/index.ts'
import {
  createEgressPolicy,
  createHttpClient,
  findUrlViolation,
  type HttpClient,
  parseConnectTo,
} from '../foundation/egress/index.ts'
import type { JsonObject } from '../foundation/json/index.ts'
import type { SecretStore } from '../foundation/secrets/index.ts'
import { describeError, type Logger } from '../foundation/telemetry/index.ts'
import {
  type AccountDependencies,
  accountRedactor,
  createAccountCascade,
  createAccountReader,
  createCredentialRefresher,
  createTokenHosts,
  createTokenHttp,
  createTokenProvider,
  getSyncableAccount,
  type TokenHosts,
} from '../platform/accounts/index.ts'
import { CallLogWatch, CallLogWriter } from '../platform/call-log/index.ts'
import {
  createDefinitionCache,
  createIntegrationCache,
  type DefinitionCache,
  type IntegrationCache,
} from '../platform/integrations/index.ts'
import { createCallLimiter } from '../platform/limits/index.ts'
import {
  type CatalogCache,
  callbackUriOf,
  createCatalogCache,
  createFormOptionsCache,
  createLinkSessionPort,
  type FormOptionsCache,
} from '../platform/links/index.ts'
import { type ContextValueStore, createContextValueStore, type ObjectStore } from '../platform/objects/index.ts'
import { createAccountSubscriptions, createSilentReporter } from '../platform/subscriptions/index.ts'
import { createUnifiedMappings, type UnifiedMappings } from '../platform/unified-config/index.ts'
import { ClaimLongPolls } from '../sync/daemons/index.ts'
import { type ArgsRules, assertMapped, checkTriggerResources, resolveArgs } from '../sync/jobs/index.ts'
import { RunQueue, RunWatch, triggerCascade } from '../sync/runs/index.ts'
import { CATCH_UP, type CatchUpPolicy } from '../sync/schedules/index.ts'
import { createToolLoader } from '../tools/servers/index.ts'
import type { ServiceDeps } from './api/services/deps.ts'
import { createProxyCalls } from './api/services/proxy-calls.ts'
import type { Config } from './config/config.ts'
import { PublicAddress } from './config/public-address.ts'
import { createContents } from './delete-cascade.ts'
import type { Observability } from './observability.ts'
import { openObjectStore, type Storage } from './open.ts'

/** What a process builds its dependencies from. */
export interface ContainerDeps {
  readonly config: Config
  readonly storage: Pick<Storage, 'database' | 'backgroundDatabase' | 'secrets'>
  readonly logger: Logger
  /** Absent: that of the system. */
  readonly clock?: Clock | undefined
}

/** What API and worker of a process are built from. */
export interface ProcessDeps extends Pick<ContainerDeps, 'config' | 'logger'> {
  readonly container: Container
  /** Metrics and monitoring; absent in commands and tests that need none. */
  readonly observability?:
    | Pick<Observability, 'metrics' | 'schedulerMonitor' | 'onHealthChange' | 'findReadinessProblem'>
    | undefined
}

/** The modules of the product over one pool of connections. */
export interface Modules
  extends ProcessResources,
    Pick<ServiceDeps, 'database' | 'callLog' | 'accounts' | 'integrations' | 'contents' | 'links'> {
  readonly secrets: SecretStore
  readonly queue: RunQueue
  readonly runs: ServiceDeps['runs'] & { readonly queue: RunQueue }
  readonly triggers: ServiceDeps['triggers'] & { readonly queue: RunQueue }
  readonly proxy: ApiProxy
  /** For requests about subscriptions. */
  readonly subscriptionProxy: Pick<ApiProxy, 'runAction'>
}

/** The dependencies of one process. */
export interface Container extends Modules, ServiceDeps, AsyncDisposable {
  readonly secrets: SecretStore
  readonly runs: Modules['runs']
  readonly triggers: Modules['triggers']
  readonly links: Modules['links']
  /** What background work uses: the same caches, sandboxes and HTTP agent, by the connections of `backgroundDatabase`. */
  readonly background: Modules
}

/**
 * Builds everything between the database and the API or worker, once per process. Modules hold connections and little else: they
 * are built for each pool of the storage. `patchbay start` has two, so that neither requests nor background work wait for a
 * connection that the other holds; what they share has no connections.
 */
export function createContainer({ config, storage, logger, clock = systemClock }: ContainerDeps): Container {
  const { database, backgroundDatabase = database, secrets } = storage
  const { [Symbol.asyncDispose]: dispose, ...resources } = createResources(config, secrets, logger, clock)
  const callLog = createCallLog(resources, backgroundDatabase)
  const modules = createModules(resources, database, callLog)
  return {
    ...modules,
    ...createRequestModules(modules),
    background: backgroundDatabase === database ? modules : createModules(resources, backgroundDatabase, callLog),
    async [Symbol.asyncDispose]() {
      await callLog[Symbol.asyncDispose]()
      await dispose()
    },
  }
}

/** The request log of the process; its statements are background work. */
function createCallLog({ secrets, clock, config, logger }: ProcessResources, database: Database): CallLogWriter {
  return new CallLogWriter({
    database,
    secrets,
    clock,
    random: Math.random,
    sampleEvery: config.callLogSample,
    onWriteError: (error) => logger.warn(describeError(error), 'entries of the request log could not be stored'),
  })
}

function createModules(resources: ProcessResources, database: Database, callLog: CallLogWriter): Modules {
  const { config, secrets, clock, formOptions, catalog, publicUrl } = resources
  const accounts = createAccounts(resources, database, callLog)
  const integrations = createIntegrations(resources, accounts)
  const runs = createRuns(resources, database)
  const proxies = createProxies(resources, accounts, callLog)
  const { proxy } = proxies
  const checkResources = checkTriggerResources.bind(undefined, resources.unifiedMappings)
  const { minTickGapSeconds } = config
  return {
    ...resources,
    ...proxies,
    database,
    callLog,
    accounts,
    integrations,
    contents: createContents(integrations),
    links: { database, secrets, accounts, proxy, formOptions, catalog, publicUrl },
    runs,
    queue: runs.queue,
    triggers: { ...runs, database, clock, minTickGapSeconds, catchUp: catchUpOf(config), checkResources },
  }
}

/** What requests alone use. */
function createRequestModules(modules: Modules) {
  const { database, accounts, callLog, proxy, clock, definitions, unifiedMappings, evaluator, publicUrl } = modules
  const calls = createProxyCalls(accounts, proxy, clock)
  return {
    calls,
    unifiedCalls: { ...calls, database, mappings: unifiedMappings, unified: { proxy, evaluator, clock } },
    toolServers: { clock, loader: createToolLoader({ definitions, unifiedMappings }), publicUrl },
    daemons: createDaemons(modules),
    runWatch: new RunWatch({ database, clock }),
    callLogWatch: new CallLogWatch({ database, clock, writer: callLog }),
    webhooks: { secrets: modules.secrets, clock, findUrlViolation: modules.findUrlViolation, triggers: triggerCascade },
  }
}

function createAccounts(resources: ProcessResources, database: Database, callLog: CallLogWriter): AccountDependencies {
  const { secrets, definitions, contextValues, http, tokenHosts: hosts, evaluator, clock, logger } = resources
  // Token requests made by an action go through a proxy without credential refresh, or a 401 there would recurse.
  const proxyWithoutRefresh = createProxy({ http, evaluator, clock, callLog })
  const tokenDeps = {
    database,
    secrets,
    definitions,
    contextValues,
    http: createTokenHttp({ http, database, clock, hosts }),
    evaluator,
    callLog,
    clock,
    logger,
    proxyWithoutRefresh,
    random: Math.random,
  }
  return {
    ...tokenDeps,
    tokens: createTokenProvider(tokenDeps),
    reader: createAccountReader(database),
    integrations: resources.integrationCache,
    triggers: triggerCascade,
    linkSessions: createLinkSessionPort({ definitions }),
    subscriptions: createAccountSubscriptions({ definitions, proxy: proxyWithoutRefresh }),
  }
}

function createIntegrations({ secrets, findUrlViolation }: ProcessResources, accounts: AccountDependencies) {
  return {
    secrets,
    checkUrls: (definition: JsonObject, path: string) => findAddressViolations(definition, path, findUrlViolation),
    accounts: createAccountCascade(accounts),
  }
}

function createRuns({ evaluator, unifiedMappings }: ProcessResources, database: Database) {
  const evaluate = (expression: string, input: JsonObject) => evaluator.evaluate(expression, input)
  return {
    queue: new RunQueue({ database, random: Math.random }),
    resolveArgs: (rules: ArgsRules, args: JsonObject) => resolveArgs(evaluate, rules, args),
    assertMapped: assertMapped.bind(undefined, unifiedMappings),
  }
}

/** The proxy of calls, and that of requests about subscriptions, which do not change the status of their account. */
function createProxies(resources: ProcessResources, accounts: AccountDependencies, callLog: CallLogWriter) {
  const { http, evaluator, clock, logger, secrets } = resources
  const accountReporter = createCredentialRefresher({
    ...accounts,
    onReportError: (error) =>
      logger.warn(describeError(error), 'the account status that a call reported could not be stored'),
  })
  const callLimiter = createCallLimiter({
    database: accounts.database,
    clock,
    random: Math.random,
    onWriteError: (error) =>
      logger.warn(describeError(error), 'a rate limit reported by an upstream could not be shared'),
  })
  const common = { http, evaluator, clock, credentialRefresher: accountReporter, callLimiter, callLog }
  return {
    proxy: createProxy({ ...common, accountReporter, sealer: secrets.sealer }),
    subscriptionProxy: createProxy({ ...common, accountReporter: createSilentReporter(accountReporter) }),
  }
}

function createDaemons({ database, accounts, queue, unifiedMappings, clock, logger }: Modules) {
  return {
    database,
    mappings: unifiedMappings,
    queue,
    longPolls: new ClaimLongPolls({ database, clock }),
    loadAccount: (environmentId: string, id: string) => getSyncableAccount(accounts, database.pool, environmentId, id),
    redactor: (environmentId: string, id: string) => accountRedactor(accounts, environmentId, id),
    onDefect: (error: unknown, runId: string) =>
      logger.error({ run_id: runId, ...describeError(error) }, 'a run could not be assigned to a daemon'),
  }
}

/** How far back missed ticks become runs of their own. */
export function catchUpOf({ catchupWindowSeconds }: Config): CatchUpPolicy {
  return { ...CATCH_UP, windowMs: catchupWindowSeconds * 1_000 }
}

/**
 * What a process has once, whatever connections its statements use: the HTTP agent, the sandboxes, the caches, the object store.
 * What one part of the process changes, every other part sees at once.
 */
interface ProcessResources {
  readonly clock: Clock
  readonly logger: Logger
  readonly config: Config
  readonly secrets: SecretStore
  /** Why no request may be sent to the URL; `undefined` when it may. */
  readonly findUrlViolation: (url: string) => string | undefined
  readonly http: HttpClient
  readonly tokenHosts: TokenHosts
  readonly evaluator: Evaluator
  readonly publicAddress: PublicAddress
  /** Without a trailing slash. */
  readonly publicUrl: () => string
  readonly definitions: DefinitionCache
  readonly integrationCache: IntegrationCache
  readonly unifiedMappings: UnifiedMappings
  readonly formOptions: FormOptionsCache
  readonly catalog: CatalogCache
  readonly objects: ObjectStore
  readonly contextValues: ContextValueStore
}

/** Opens them; nothing is sent or started yet. */
function createResources(
  config: Config,
  secrets: SecretStore,
  logger: Logger,
  clock: Clock,
): ProcessResources & AsyncDisposable {
  const policy = createEgressPolicy({ allow: config.egressAllow })
  const http = createHttpClient({
    policy,
    connectTo: parseConnectTo(config.egressConnectTo, config.egressAllow),
    proxies: config,
  })
  if (config.egressConnectTo !== '')
    logger.warn(
      { connect_to: config.egressConnectTo },
      'PATCHBAY_EGRESS_CONNECT_TO diverts outbound calls: never in production',
    )
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
  return {
    clock,
    logger,
    config,
    secrets,
    findUrlViolation: (url) => findUrlViolation(policy, url),
    http,
    tokenHosts: createTokenHosts(),
    evaluator,
    publicAddress,
    publicUrl,
    definitions,
    integrationCache: createIntegrationCache(),
    unifiedMappings: createUnifiedMappings({ clock }),
    formOptions: createFormOptionsCache(clock),
    catalog: createCatalogCache(definitions),
    objects,
    contextValues: createContextValueStore(secrets, objects),
    async [Symbol.asyncDispose]() {
      await evaluator[Symbol.asyncDispose]()
      await http[Symbol.asyncDispose]()
      await objects[Symbol.asyncDispose]()
    },
  }
}
