import { LRUCache } from 'lru-cache'
import { FILTER_OPERATORS, type MappingPlan } from '../../engine/unified/index.ts'
import { catchFailure, Failure, MicroBatcher, notFound } from '../../foundation/base/index.ts'
import type { Database, Db } from '../../foundation/database/index.ts'
import type { DefinitionCache } from '../../platform/integrations/index.ts'
import { type EffectiveMapping, listMappedModels, type UnifiedMappings } from '../../platform/unified-config/index.ts'
import { type DerivedTools, deriveTools, type ToolWarning } from './derive-tools.ts'
import type { ToolIntegration } from './proxy-tools.ts'
import { selectToolAccounts, TOOL_ACCOUNTS_MAX, type ToolAccount, type ToolAccountScope } from './sql/tool-account.ts'
import type { ToolServerRecord } from './sql/tool-server.ts'
import { requiredArguments, type UnifiedToolFilter, type UnifiedToolMethod } from './unified-tools.ts'

/** What decides the tools of a tool server. */
export type ToolScope = Pick<
  ToolServerRecord,
  'environmentId' | 'integratedAccountId' | 'tenantId' | 'integrations' | 'filter' | 'isReadOnly'
>

/** The tools of a tool server, and whether there is an account to derive them from. */
export interface LoadedTools extends DerivedTools {
  readonly hasAccounts: boolean
}

/** What the tools are derived from. */
export interface ToolSourceDeps {
  readonly definitions: DefinitionCache
  readonly unifiedMappings: Pick<UnifiedMappings, 'list' | 'invalidate'>
}

/** Cache size in tools, each a few kilobytes; a tool server counts as some more than it has. */
const TOOLS_CACHED_MAX = 50_000
const WEIGHT_OF_SERVER = 10
const CONCURRENT_READS_MAX = 2
const SCOPES_PER_READ_MAX = 50

/** Reads the accounts of a scope. */
type ReadToolAccounts = (scope: ToolAccountScope) => Promise<readonly ToolAccount[]>

/** The tools of tool servers, derived once per state of what they depend on. */
export interface ToolLoader {
  /**
   * The tools that the committed state of accounts, definitions and mappings gives, in one statement unless it is a new one.
   * What a definition no longer compiles to is left out with a warning.
   *
   * @param read how that state is read; absent: with `tx`
   * @throws Failure RESOURCE_NOT_FOUND for an unknown account
   */
  load(tx: Db, scope: ToolScope, read?: ReadToolAccounts): Promise<LoadedTools>
}

/** Batches concurrent reads; nothing is cached, so a read sees every change that was committed before it. */
export function createToolAccountReader(database: Pick<Database, 'pool'>): ReadToolAccounts {
  const batcher = new MicroBatcher<ToolAccountScope, readonly ToolAccount[]>({
    concurrencyMax: CONCURRENT_READS_MAX,
    batchMax: SCOPES_PER_READ_MAX,
    process: (scopes) => selectToolAccounts(database.pool, scopes),
  })
  return (scope) => batcher.run(scope)
}

/** Creates the loader of one process. */
export function createToolLoader(deps: ToolSourceDeps): ToolLoader {
  const derived = new LRUCache<string, LoadedTools>({
    maxSize: TOOLS_CACHED_MAX,
    sizeCalculation: ({ tools, withheld }) => WEIGHT_OF_SERVER + tools.length + withheld.size,
  })
  return {
    async load(tx, scope, read = (wanted) => readAccounts(tx, wanted)) {
      const found = await read(scope)
      const key = cacheKey(scope, found)
      const cached = derived.get(key)
      if (cached !== undefined) return cached
      const { loaded, isLasting } = await derive(deps, tx, scope, found)
      // What was derived may be of a later state, which the key would outlive if that state were undone.
      if (isLasting && cacheKey(scope, await read(scope)) === key) derived.set(key, loaded)
      return loaded
    },
  }
}

async function readAccounts(tx: Db, scope: ToolAccountScope): Promise<readonly ToolAccount[]> {
  const [found = []] = await selectToolAccounts(tx, [scope])
  return found
}

async function derive(
  deps: ToolSourceDeps,
  tx: Db,
  scope: ToolScope,
  found: readonly ToolAccount[],
): Promise<{ readonly loaded: LoadedTools; readonly isLasting: boolean }> {
  const accounts = accountsOf(scope, found)
  const { parts, warnings, isLasting } = await partsOf(deps, tx, accounts)
  const tools = deriveTools({
    integrations: parts.map(({ integration }) => integration),
    unified: await unifiedMethods(deps, tx, parts),
    filter: scope.filter,
    isReadOnly: scope.isReadOnly,
    isPrefixed: scope.tenantId !== null && scope.integrations.length !== 1,
  })
  const loaded = {
    ...tools,
    warnings: [...accountWarnings(scope, found), ...warnings, ...tools.warnings],
    hasAccounts: accounts.length > 0,
  }
  return { loaded, isLasting }
}

/** By integration, oldest first: the order of the tools and of the argument `account`. */
function accountsOf({ integratedAccountId }: ToolScope, found: readonly ToolAccount[]): readonly ToolAccount[] {
  if (integratedAccountId !== null) {
    if (found.length === 0) throw notFound('integrated_account', integratedAccountId)
    return found
  }
  return found
    .slice(0, TOOL_ACCOUNTS_MAX)
    .sort((one, other) => compare(one.integrationName, other.integrationName) || compare(one.id, other.id))
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** Of a tenant: a misspelled name looks like an account that is not connected yet. */
function accountWarnings(
  { tenantId, integrations }: ToolScope,
  accounts: readonly ToolAccount[],
): readonly ToolWarning[] {
  if (tenantId === null) return []
  if (accounts.length > TOOL_ACCOUNTS_MAX) {
    const message = `tenant ${tenantId} has more than ${TOOL_ACCOUNTS_MAX} accounts for this server: it calls the newest ones`
    return [{ code: 'accounts_left_out', tool: '', message }]
  }
  const missing = integrations.filter((name) => !accounts.some(({ integrationName }) => integrationName === name))
  if (missing.length === 0 && accounts.length > 0) return []
  const message =
    missing.length === 0
      ? `tenant ${tenantId} has no connected account`
      : `no connected account of tenant ${tenantId} has one of: ${missing.join(', ')}`
  return [{ code: 'no_accounts', tool: '', message }]
}

/** One integration with its accounts. */
interface IntegrationPart {
  readonly integration: ToolIntegration
  readonly accounts: readonly ToolAccount[]
}

/** The integrations of accounts whose definitions can be used. */
interface DefinedParts {
  readonly parts: readonly IntegrationPart[]
  readonly warnings: readonly ToolWarning[]
  /** Whether it is the same as long as the versions are. */
  readonly isLasting: boolean
}

async function partsOf(
  { definitions }: ToolSourceDeps,
  tx: Db,
  accounts: readonly ToolAccount[],
): Promise<DefinedParts> {
  const parts: IntegrationPart[] = []
  let isLasting = true
  const warnings: ToolWarning[] = accounts.flatMap(statusWarning)
  for (const [, group] of Map.groupBy(accounts, ({ environmentIntegrationId }) => environmentIntegrationId)) {
    const [first] = group
    if (first === undefined) continue
    const definition = await catchFailure(() => definitions.getVersion(tx, first))
    if (definition instanceof Failure) {
      isLasting &&= definition.reason === 'DEFINITION_INVALID'
      const message = `the definition of ${first.integrationName} cannot be used: ${definition.publicMessage}`
      warnings.push({ code: 'account_unusable', tool: '', message })
      continue
    }
    const { config, plan } = definition
    const label = typeof config.label === 'string' && config.label !== '' ? config.label : first.integrationName
    const accountIds = group.map(({ id }) => id)
    parts.push({
      integration: { integrationName: first.integrationName, label, config, plan, accountIds },
      accounts: group,
    })
  }
  return { parts, warnings, isLasting }
}

function statusWarning({ id, status, isEnabled, integrationName }: ToolAccount): readonly ToolWarning[] {
  const problem = !isEnabled
    ? 'its integration is disabled'
    : status === 'active'
      ? undefined
      : `its status is ${status}`
  if (problem === undefined) return []
  return [
    { code: 'account_unusable', tool: '', message: `calls of account ${id} (${integrationName}) fail: ${problem}` },
  ]
}

/** The mapped methods of all accounts, each with the accounts that have it; by model, resource and method. */
async function unifiedMethods(
  { unifiedMappings }: ToolSourceDeps,
  tx: Db,
  parts: readonly IntegrationPart[],
): Promise<readonly UnifiedToolMethod[]> {
  const byKey = new Map<string, UnifiedToolMethod>()
  unifiedMappings.invalidate()
  const accounts = parts.flatMap(({ integration, accounts }) =>
    accounts.map((each) => ({ ...each, label: integration.label })),
  )
  for (const { id, environmentId, integrationName, label } of accounts) {
    const account = { environmentId, integratedAccountId: id, integrationName }
    for (const model of await listMappedModels(tx, account)) {
      const mapped = await catchFailure(() => unifiedMappings.list(tx, account, model))
      if (mapped instanceof Failure) continue
      for (const each of mapped) {
        const key = `${model} ${each.resource.name} ${each.method}`
        byKey.set(key, withAccount(byKey.get(key), model, each, { id, label }))
      }
    }
  }
  return [...byKey.values()]
}

function withAccount(
  known: UnifiedToolMethod | undefined,
  model: string,
  { resource, method, plan }: EffectiveMapping,
  account: UnifiedToolMethod['accounts'][number],
): UnifiedToolMethod {
  const before = known?.filters ?? []
  return {
    model,
    resource: resource.name,
    method,
    description: resource.description,
    schema: resource.schema,
    filters: [...before, ...filtersOf(plan).filter((each) => !before.some((other) => sameFilter(each, other)))],
    required: requiredArguments(plan).filter((path) => known?.required.includes(path) ?? true),
    accounts: [...(known?.accounts ?? []), account],
  }
}

/** The filters that a mapping honours. */
function filtersOf({ filters }: MappingPlan): readonly UnifiedToolFilter[] {
  return [...filters].flatMap(([field, ops]) =>
    FILTER_OPERATORS.filter((op) => ops.includes(op)).map((op) => ({ field, op })),
  )
}

function sameFilter(one: UnifiedToolFilter, other: UnifiedToolFilter): boolean {
  return one.field === other.field && one.op === other.op
}

/** The accounts as they were read, before any that the scope leaves out: equal keys have equal tools. */
function cacheKey({ filter, isReadOnly, tenantId, integrations }: ToolScope, found: readonly ToolAccount[]): string {
  return JSON.stringify([filter, isReadOnly, tenantId, integrations, found])
}
