import { LRUCache } from 'lru-cache'
import { type AccountWithDefinition, findIntegratedAccount, selectIntegratedAccounts } from '../accounts/index.ts'
import { catchFailure, Failure, type JsonObject, notFound } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import type { DefinitionCache } from '../integrations/index.ts'
import { FILTER_OPERATORS, type MappingPlan } from '../unified/index.ts'
import { type EffectiveMapping, listMappedModels, type UnifiedMappings } from '../unified-models/index.ts'
import { type DerivedTools, deriveTools, type ToolWarning } from './derive-tools.ts'
import type { ToolIntegration } from './proxy-tools.ts'
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
  readonly unifiedMappings: Pick<UnifiedMappings, 'list'>
}

/** Accounts of one tenant that a tool server calls at most. */
const ACCOUNTS_MAX = 50
const SERVERS_CACHED_MAX = 200

/** The tools of tool servers, derived once per state of what they depend on. */
export interface ToolLoader {
  /**
   * Reads the accounts of the scope and derives their tools; what a definition no longer compiles to is left out with a warning.
   *
   * @throws Failure RESOURCE_NOT_FOUND for an unknown account
   */
  load(tx: Tx, scope: ToolScope): Promise<LoadedTools>
}

/** Creates the loader of one process. */
export function createToolLoader(deps: ToolSourceDeps): ToolLoader {
  const derived = new LRUCache<string, LoadedTools>({ max: SERVERS_CACHED_MAX })
  return {
    async load(tx, scope) {
      const accounts = await accountsOf(tx, scope)
      const { parts, warnings } = await partsOf(deps, tx, accounts)
      const unified = await unifiedMethods(deps, tx, parts)
      const key = cacheKey(scope, accounts, unified)
      const cached = derived.get(key)
      if (cached !== undefined) return cached
      const tools = deriveTools({
        integrations: parts.map(({ integration }) => integration),
        unified: unified.methods,
        filter: scope.filter,
        isReadOnly: scope.isReadOnly,
        isPrefixed: scope.tenantId !== null && scope.integrations.length !== 1,
      })
      const loaded = {
        ...tools,
        warnings: [...accountWarnings(scope, accounts), ...warnings, ...tools.warnings],
        hasAccounts: accounts.length > 0,
      }
      derived.set(key, loaded)
      return loaded
    },
  }
}

/** By integration, oldest first: the order of the tools and of the argument `account`. */
async function accountsOf(tx: Tx, scope: ToolScope): Promise<readonly AccountWithDefinition[]> {
  const { environmentId, integratedAccountId, tenantId, integrations } = scope
  if (integratedAccountId !== null) {
    const account = await findIntegratedAccount(tx, environmentId, integratedAccountId)
    if (account === undefined) throw notFound('integrated_account', integratedAccountId)
    return [account]
  }
  const page = { before: undefined, limit: ACCOUNTS_MAX }
  const found = await selectIntegratedAccounts(tx, environmentId, { tenantId: tenantId ?? '' }, page)
  return found
    .filter(({ integrationName }) => integrations.length === 0 || integrations.includes(integrationName))
    .sort((one, other) => compare(one.integrationName, other.integrationName) || compare(one.id, other.id))
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** Of a tenant: a misspelled name looks like an account that is not connected yet. */
function accountWarnings(
  { tenantId, integrations }: ToolScope,
  accounts: readonly AccountWithDefinition[],
): readonly ToolWarning[] {
  if (tenantId === null) return []
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
  readonly accounts: readonly AccountWithDefinition[]
}

async function partsOf(
  { definitions }: ToolSourceDeps,
  tx: Tx,
  accounts: readonly AccountWithDefinition[],
): Promise<{ readonly parts: readonly IntegrationPart[]; readonly warnings: readonly ToolWarning[] }> {
  const parts: IntegrationPart[] = []
  const warnings: ToolWarning[] = accounts.flatMap(statusWarning)
  for (const [, group] of Map.groupBy(accounts, ({ environmentIntegrationId }) => environmentIntegrationId)) {
    const [first] = group
    if (first === undefined) continue
    const definition = await catchFailure(() => definitions.getVersion(tx, first))
    if (definition instanceof Failure) {
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
  return { parts, warnings }
}

function statusWarning({ id, status, isEnabled, integrationName }: AccountWithDefinition): readonly ToolWarning[] {
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

/** Mapped methods, and what they were read from. */
interface UnifiedPart {
  readonly methods: readonly UnifiedToolMethod[]
  /** Changes with the mappings. */
  readonly version: readonly object[]
}

/** The mapped methods of all accounts, each with the accounts that have it; by model, resource and method. */
async function unifiedMethods(
  { unifiedMappings }: ToolSourceDeps,
  tx: Tx,
  parts: readonly IntegrationPart[],
): Promise<UnifiedPart> {
  const byKey = new Map<string, UnifiedToolMethod>()
  const version: object[] = []
  const accounts = parts.flatMap(({ integration, accounts }) =>
    accounts.map((each) => ({ ...each, label: integration.label })),
  )
  for (const { id, environmentId, integrationName, label } of accounts) {
    const account = { environmentId, integratedAccountId: id, integrationName }
    for (const model of await listMappedModels(tx, account)) {
      const mapped = await catchFailure(() => unifiedMappings.list(tx, account, model))
      if (mapped instanceof Failure) continue
      for (const each of mapped) {
        version.push(each.merged)
        const key = `${model} ${each.resource.name} ${each.method}`
        byKey.set(key, withAccount(byKey.get(key), model, each, { id, label }))
      }
    }
  }
  return { methods: [...byKey.values()], version }
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

const identities = new WeakMap<object, number>()
let identityCount = 0

/** A number for each object: mappings that are cached are the same object until they change. */
function identityOf(value: object): number {
  const known = identities.get(value)
  if (known !== undefined) return known
  identityCount += 1
  identities.set(value, identityCount)
  return identityCount
}

function cacheKey(scope: ToolScope, accounts: readonly AccountWithDefinition[], { version }: UnifiedPart): string {
  const { filter, isReadOnly, tenantId, integrations } = scope
  const states = accounts.map((each) =>
    [
      each.id,
      each.status,
      each.isEnabled,
      each.environmentIntegrationId,
      each.integrationVersion,
      each.installationVersion,
    ].join(),
  )
  const own: JsonObject = { filter: { ...filter }, isReadOnly, tenantId, integrations: [...integrations] }
  return JSON.stringify([own, states, version.map(identityOf)])
}
