import type { Plan, WebhookPlan } from '../../engine/definitions/index.ts'
import type { AccountValues, TemplateScope } from '../../engine/expressions/index.ts'
import { type Clock, Failure, isUuid, MicroBatcher, TtlCache } from '../../foundation/base/index.ts'
import type { Database, Db, Tx } from '../../foundation/database/index.ts'
import { type JsonObject, parseJson } from '../../foundation/json/index.ts'
import type { SecretRef } from '../../foundation/secrets/index.ts'
import type { AccountDependencies, ResolvedAccount } from '../../platform/accounts/index.ts'
import { getResolvedAccount, loadAccountForDryRun, webhookPath } from '../../platform/accounts/index.ts'
import type { SourceKind } from './inbound-event.ts'
import { findEnvironmentsOfSources, findInstallationSource, lockSource } from './sql/source.ts'

/** The address of a webhook: `/integrated-account-webhook/{id}` or `/environment-integration-webhook/{id}`. */
export interface SourceAddress {
  readonly kind: SourceKind
  readonly id: string
}

/** An address with everything that receiving and processing needs. Holds plain credentials: never shown, never logged. */
export interface InboundSource extends SourceAddress {
  readonly environmentId: string
  readonly environmentIntegrationId: string
  readonly integration: { readonly id: string; readonly name: string }
  /** Absent for the address of an installation. */
  readonly integratedAccountId: string | undefined
  /** Of the account. */
  readonly tenantId: string | undefined
  /** The account is being connected: the third party may be verifying the address that it was just given. */
  readonly isConnecting: boolean
  readonly plan: Plan
  readonly webhook: WebhookPlan
  readonly values: AccountValues
}

/** What loading a source takes. */
export interface SourceDeps {
  readonly database: Database
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly accounts: Pick<AccountDependencies, 'database' | 'reader' | 'secrets' | 'definitions' | 'contextValues'>
  /** Without a trailing slash. */
  readonly publicUrl: () => string
}

/** Finds sources. */
export interface SourceReader {
  /**
   * `undefined` for an unknown id, a disabled installation, and a definition without a webhook block: all three look alike.
   *
   * @throws Failure DEFINITION_INVALID, SECRET_UNREADABLE
   */
  find(address: SourceAddress): Promise<InboundSource | undefined>
  /**
   * A source as it is now, its row locked until `tx` ends: what is decided by its values holds when it is stored.
   *
   * @throws Failure as `find`
   */
  lock(tx: Tx, source: InboundSource): Promise<InboundSource | undefined>
}

const KNOWN_MAX = 100_000
/** Ids are never given twice, so that one which is known belongs to its environment for ever. */
const KNOWN_MS = 24 * 3_600_000
/** A flood to a deleted address costs one look-up a second. */
const UNKNOWN_MS = 1_000
const BATCHES_MAX = 2
const BATCH_MAX = 200

/** The secrets that handshakes of an installation's address brought. */
export function installationSecretRef(environmentId: string, id: string): SecretRef {
  return { ownerId: environmentId, subjectType: 'inbound_webhook', subjectId: id }
}

/** Nothing but the environment of an id is cached: a source is as it was committed when its request came in. */
export function createSourceReader(deps: SourceDeps): SourceReader {
  const environments = new TtlCache<string | null>({ max: KNOWN_MAX, ttlMs: KNOWN_MS, clock: deps.clock })
  const byId = new MicroBatcher({
    concurrencyMax: BATCHES_MAX,
    batchMax: BATCH_MAX,
    process: (addresses: readonly SourceAddress[]) => findEnvironmentsOfSources(deps.database.pool, addresses),
  })

  async function findEnvironment(address: SourceAddress): Promise<string | null> {
    if (!isUuid(address.id)) return null
    const key = `${address.kind} ${address.id}`
    const cached = environments.get(key)
    if (cached !== undefined) return cached
    const environmentId = await byId.run(address)
    environments.set(key, environmentId, environmentId === null ? UNKNOWN_MS : KNOWN_MS)
    return environmentId
  }

  return {
    async find({ kind, id }) {
      const address = { kind, id: id.toLowerCase() }
      const environmentId = await findEnvironment(address)
      if (environmentId === null) return undefined
      if (address.kind === 'environment_integration')
        return await loadInstallationSource(deps, deps.database.pool, environmentId, address.id)
      const found = await unlessMissing(loadAccountForDryRun(deps.accounts, environmentId, address.id))
      return found === undefined ? undefined : accountSource(found.resolved)
    },
    async lock(tx, source) {
      const { kind, environmentId, id } = source
      if (!(await lockSource(tx, source))) return undefined
      if (kind === 'environment_integration') return await loadInstallationSource(deps, tx, environmentId, id)
      return accountSource(await getResolvedAccount(deps.accounts, tx, environmentId, id))
    },
  }
}

function accountSource({ account, plan, access }: ResolvedAccount): InboundSource | undefined {
  const { id, environmentId } = account
  if (!account.isEnabled || plan.webhook === undefined) return undefined
  return {
    kind: 'integrated_account',
    id,
    environmentId,
    environmentIntegrationId: account.environmentIntegrationId,
    integration: { id: account.integrationId, name: account.integrationName },
    integratedAccountId: id,
    tenantId: account.tenantId,
    isConnecting: account.status === 'connecting',
    plan,
    webhook: plan.webhook,
    values: access,
  }
}

async function loadInstallationSource(
  deps: SourceDeps,
  tx: Db,
  environmentId: string,
  id: string,
): Promise<InboundSource | undefined> {
  const { secrets, definitions } = deps.accounts
  const found = await findInstallationSource(tx, environmentId, id)
  if (found === undefined || !found.isEnabled) return undefined
  const definition = await definitions.getVersion(tx, {
    ...found,
    environmentId,
    environmentIntegrationId: id,
  })
  const { plan, environmentVariables } = definition
  if (plan.webhook === undefined) return undefined
  const texts = await secrets.decryptAll(tx, installationSecretRef(environmentId, id), found.secrets)
  const webhook = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, parseJson(text)]))
  const connection: JsonObject = {
    ...definition.connection,
    webhook_url: deps.publicUrl() + webhookPath('environment_integration', id),
    webhook,
  }
  return {
    kind: 'environment_integration',
    id,
    environmentId,
    environmentIntegrationId: id,
    integration: { id: found.integrationId, name: found.integrationName },
    integratedAccountId: undefined,
    tenantId: undefined,
    isConnecting: false,
    plan,
    webhook: plan.webhook,
    // Placeholders read connection.webhook from the credentials, expressions from the connection.
    values: { context: {}, credentials: { webhook }, environmentVariables, connection },
  }
}

/** The scope of placeholders of the webhook block. */
export function scopeOf({ values }: Pick<InboundSource, 'values'>): TemplateScope {
  return { account: values, call: {} }
}

async function unlessMissing<Value>(loading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await loading
  } catch (error) {
    if (error instanceof Failure && error.reason === 'RESOURCE_NOT_FOUND') return undefined
    throw error
  }
}

/** The same for an id that does not exist, a disabled installation and a definition that receives nothing. */
function unknownAddress({ kind }: SourceAddress): Failure {
  return new Failure('RESOURCE_NOT_FOUND', `there is no webhook address of this ${kind.replaceAll('_', ' ')}`)
}

/** The source of an address. @throws Failure RESOURCE_NOT_FOUND, those of `find` */
export async function findSource(sources: SourceReader, address: SourceAddress): Promise<InboundSource> {
  const source = await sources.find(address)
  if (source === undefined) throw unknownAddress(address)
  return source
}
