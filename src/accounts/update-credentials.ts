import { etagMismatch, type JsonObject, notFound, parseJson } from '../base/index.ts'
import type { ConnectPlan } from '../definition/index.ts'
import type { DefinitionCache, IntegrationCache } from '../integrations/index.ts'
import {
  type AccountWithDefinition,
  findIntegratedAccount,
  resetToken,
  type SecretStore,
  type Tx,
  updateIntegratedAccountRow,
} from '../storage/index.ts'
import { changeAccountStatus } from './change-status.ts'
import { type CollectedCredentials, chooseMethod, collectForMethod } from './credentials.ts'
import { type IntegratedAccount, withIntegration } from './embedded.ts'
import type { EnvironmentRef } from './integrated-account.ts'
import { accountSecretRef } from './secret-ref.ts'
import { type ImportTokenDeps, importToken } from './tokens/import-token.ts'
import { TOKEN_SECRET } from './tokens/stored-token.ts'

/** What giving an account new credentials needs. */
export interface UpdateCredentialsDeps extends ImportTokenDeps {
  readonly secrets: Pick<SecretStore, 'get' | 'put' | 'remove'>
  readonly definitions: DefinitionCache
  readonly integrations: IntegrationCache
}

/** New values for an account's fields. */
export interface CredentialsChange {
  readonly id: string
  /** By name; null takes an optional one away, a field left out keeps its value. A token as in `createIntegratedAccount`. */
  readonly credentials: JsonObject
  /** The version the caller saw; absent: whatever is stored. */
  readonly version?: number | undefined
}

const NO_TOKEN = { expiresAt: null, dueAt: null }

/**
 * Gives an account new credentials: it is `connecting` from then on and proved again, with a token of its new credentials.
 * What is being asked of the third party with the old ones comes to nothing. `tx` is a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, CREDENTIALS_INVALID and SECRET_MASKED with every finding under
 * `credentials`, DEFINITION_INVALID
 */
export async function updateCredentials(
  deps: UpdateCredentialsDeps,
  tx: Tx,
  { environmentId }: EnvironmentRef,
  { id, credentials, version }: CredentialsChange,
): Promise<IntegratedAccount> {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  const { plan } = await deps.definitions.getVersion(tx, account)
  const connect = chooseMethod(plan.credentials, account.authenticationMethod)
  const stored = await deps.secrets.get(tx, accountSecretRef(account))
  const collected = collectForMethod(connect, { ...storedValues(connect, stored, account.context), ...credentials })
  await replaceToken(deps, tx, account, collected)
  await replaceFields(deps, tx, account, { collected, version, stored })
  await changeAccountStatus(tx, account, 'reconnected')
  const changed = await findIntegratedAccount(tx, environmentId, id)
  if (changed === undefined) throw notFound('integrated_account', id)
  return await withIntegration(deps.integrations, tx, changed)
}

/** The values the account has, as a customer would give them again. */
function storedValues(
  { fields }: ConnectPlan,
  stored: Readonly<Record<string, string>>,
  context: JsonObject,
): JsonObject {
  const entries = fields.flatMap(({ name, type }) => {
    const text = type === 'password' ? stored[name] : undefined
    const value = text === undefined ? context[name] : parseJson(text)
    return value === undefined ? [] : [[name, value] as const]
  })
  return Object.fromEntries(entries)
}

/** First of all, because whoever settles a token locks its row before that of the account. */
async function replaceToken(
  deps: UpdateCredentialsDeps,
  tx: Tx,
  account: AccountWithDefinition,
  { connect, importedToken }: CollectedCredentials,
): Promise<void> {
  if (importedToken !== undefined) return await importToken(deps, tx, account, connect, importedToken)
  // The customer's consent stands as long as no other token is given.
  if (connect.token === undefined || connect.isTokenImported === true) return
  await resetToken(tx, account, NO_TOKEN)
  await deps.secrets.remove(tx, accountSecretRef(account), [TOKEN_SECRET])
}

async function replaceFields(
  { secrets }: UpdateCredentialsDeps,
  tx: Tx,
  account: AccountWithDefinition,
  change: {
    readonly collected: CollectedCredentials
    readonly version: number | undefined
    readonly stored: Readonly<Record<string, string>>
  },
): Promise<void> {
  const { collected, version, stored } = change
  const ref = accountSecretRef(account)
  const isGone = (name: string) => name !== TOKEN_SECRET && !Object.hasOwn(collected.secrets, name)
  await secrets.remove(tx, ref, Object.keys(stored).filter(isGone))
  const names = collected.connect.fields.map(({ name }) => name)
  const removedContextKeys = names.filter((name) => !Object.hasOwn(collected.contextFields, name))
  const patch = { tenantId: undefined, contextKeys: collected.contextFields, removedContextKeys, version }
  const updated = await updateIntegratedAccountRow(tx, account.environmentId, account.id, patch)
  if (updated === undefined) throw etagMismatch('integrated_account', account.id)
  await secrets.put(tx, ref, collected.secrets)
}
