import {
  type AccountTriggers,
  createAccountReader,
  createCredentialRefresher,
  createTokenProvider,
  deleteAccountsByInstallation,
  getSyncableAccount,
  type LoadAccountDeps,
  loadAccountForCall,
  loadAccountForDryRun,
  redactAccountSecrets,
  type TokenProvider,
  type TokenProviderDeps,
} from './accounts/index.ts'
import type { ServiceDeps } from './api/index.ts'
import { type Clock, type JsonObject, systemClock, type Violation } from './base/index.ts'
import { createCallLimiter } from './budgets/index.ts'
import type { Config } from './config.ts'
import { ClaimLongPolls } from './daemons/index.ts'
import { listAddresses } from './definition/index.ts'
import { createEgressPolicy, createHttpClient, findUrlViolation, type HttpClient } from './egress/index.ts'
import { createEvaluator, type Evaluator } from './expression/index.ts'
import type { Storage } from './installation.ts'
import {
  createDefinitionCache,
  createIntegrationCache,
  type DefinitionCache,
  deleteInstallationsOfEnvironment,
  deleteIntegrationsOfTeam,
} from './integrations/index.ts'
import type { Observability } from './operating.ts'
import { createProxy, type Proxy as Engine } from './proxy/index.ts'
import { RunQueue, RunWatch } from './queue/index.ts'
import { CATCH_UP, type CatchUpPolicy } from './schedule/index.ts'
import { deleteRemainsOfEnvironment, deleteTriggersOf, stopRunsOfAccount } from './storage/index.ts'
import { type ArgsRules, checkTriggerResources, resolveArgs } from './sync/index.ts'
import { describeError, type Logger } from './telemetry/index.ts'

/** What a process is composed from. */
export interface ProcessDeps {
  readonly config: Config
  readonly storage: Storage
  readonly logger: Logger
  /** Absent: it is not watched. */
  readonly operating?: Pick<Observability, 'metrics' | 'schedule' | 'watchProblem'> | undefined
}

/** The rooms of one process, each built once and handed what it asks for. */
export interface Container extends ServiceDeps, AsyncDisposable {
  readonly clock: Clock
  readonly http: HttpClient
  readonly evaluator: Evaluator
  readonly proxy: Engine
  readonly accounts: ServiceDeps['accounts'] & TokenProviderDeps & LoadAccountDeps & { readonly tokens: TokenProvider }
  readonly definitions: DefinitionCache
  readonly queue: RunQueue
}

/** Triggers of an account that goes: nothing fires for it again, and what runs ends at its next page. */
const triggersOfAccount: AccountTriggers = {
  async deleteByAccount(tx, environmentId, accountId) {
    await deleteTriggersOf(tx, environmentId, 'integrated_account_id', accountId)
    await stopRunsOfAccount(tx, environmentId, accountId)
  },
}

/** How far back this installation catches missed ticks up. */
export function catchUpOf({ catchupWindowSeconds }: Config): CatchUpPolicy {
  return { ...CATCH_UP, windowMs: catchupWindowSeconds * 1_000 }
}

/** Builds everything between the database and the doors (API, worker). */
export function createContainer({ config, storage: { database, secrets }, logger }: ProcessDeps): Container {
  const clock = systemClock
  const policy = createEgressPolicy({ allow: config.egressAllow })
  const http = createHttpClient({ policy })
  const evaluator = createEvaluator({
    clock,
    onQuarantine: ({ owner, hash }) =>
      logger.warn({ owner, hash }, 'an expression was set aside: it kept killing its sandbox'),
  })
  const definitions = createDefinitionCache(secrets)
  // Tokens are renewed by an engine that asks nobody to renew them.
  const engine = createProxy({ http, evaluator, clock })
  const tokenDeps = { database, secrets, definitions, http, evaluator, clock, engine, random: Math.random }
  const tokens = createTokenProvider(tokenDeps)
  const accounts = {
    ...tokenDeps,
    tokens,
    reader: createAccountReader(database),
    integrations: createIntegrationCache(),
    triggers: triggersOfAccount,
  }
  const integrations = {
    secrets,
    checkUrls: (definition: JsonObject, path: string) =>
      addressViolations(definition, path, (url) => findUrlViolation(policy, url)),
    accounts: { deleteByInstallation: deleteAccountsByInstallation.bind(undefined, accounts) },
  }
  const queue = new RunQueue({ database, random: Math.random })
  const evaluate = (expression: string, input: JsonObject) => evaluator.evaluate(expression, input)
  const runs = { queue, resolveArgs: (rules: ArgsRules, given: JsonObject) => resolveArgs(evaluate, rules, given) }
  const keeper = createCredentialRefresher({
    ...accounts,
    onReportError: (error) =>
      logger.warn(describeError(error), 'what a call says about its account could not be noted'),
  })
  const budgets = createCallLimiter({
    database,
    clock,
    random: Math.random,
    onWriteError: (error) => logger.warn(describeError(error), 'what is known about a limit could not be shared'),
  })
  const proxy = createProxy({ http, evaluator, clock, keeper, budgets })
  return {
    database,
    secrets,
    clock,
    http,
    evaluator,
    definitions,
    queue,
    accounts,
    integrations,
    runs,
    proxy,
    calls: {
      proxy,
      clock,
      readyAccount: (environmentId, id) => loadAccountForCall(accounts, environmentId, id, 'call'),
      previewAccount: (environmentId, id) => loadAccountForDryRun(accounts, environmentId, id),
    },
    daemons: {
      database,
      queue,
      waits: new ClaimLongPolls({ database, clock }),
      loadAccount: (environmentId, id) => getSyncableAccount({ definitions }, database.pool, environmentId, id),
      redact: (environmentId, id, text) => redactAccountSecrets(accounts, environmentId, id, text),
      onDefect: (error, runId) =>
        logger.error({ run_id: runId, ...describeError(error) }, 'a run could not be handed to a daemon'),
    },
    runWatch: new RunWatch({ database, clock }),
    webhooks: { secrets, clock, findUrlViolation: (url) => findUrlViolation(policy, url) },
    triggers: {
      ...runs,
      database,
      minTickGapSeconds: config.minTickGapSeconds,
      catchUp: catchUpOf(config),
      checkResources: checkTriggerResources,
    },
    contents: {
      async deleteByEnvironment(tx, environmentId) {
        await deleteInstallationsOfEnvironment(integrations, tx, environmentId)
        await deleteRemainsOfEnvironment(tx, environmentId)
      },
      deleteIntegrationsOfTeam: (tx, teamId) => deleteIntegrationsOfTeam(integrations, tx, teamId),
      destroyKeys: (tx, ownerId) => secrets.destroyKeys(tx, ownerId),
    },
    async [Symbol.asyncDispose]() {
      await evaluator[Symbol.asyncDispose]()
      await http[Symbol.asyncDispose]()
    },
  }
}

/** Findings for every written-out address of a definition that outbound calls may not reach. */
function addressViolations(
  definition: JsonObject,
  prefix: string,
  findViolation: (url: string) => string | undefined,
): Violation[] {
  return listAddresses(definition, prefix).flatMap(({ path, url }) => {
    const description = findViolation(url)
    return description === undefined ? [] : [{ field: path, description, rule: 'url.not_allowed' }]
  })
}
