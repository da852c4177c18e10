import { Failure, type JsonObject, notFound } from '../base/index.ts'
import type { Plan } from '../definition/index.ts'
import type { DefinitionSource } from '../integrations/index.ts'
import type { AccountAccess } from '../proxy/index.ts'
import {
  type AccountWithVersions,
  findIntegratedAccount,
  type IntegratedAccountRecord,
  type Secrets,
  type Tx,
} from '../storage/index.ts'
import { integrationDisabled } from './connect.ts'
import { accountSecrets } from './secret-ref.ts'

/** An account that may be called through, with all that a call needs. Holds plain credentials: never shown, never logged. */
export interface ReadyAccount {
  readonly account: IntegratedAccountRecord
  readonly integrationName: string
  readonly plan: Plan
  readonly access: AccountAccess
}

/** Where credentials and definitions come from. */
export interface AccessDeps {
  readonly secrets: Pick<Secrets, 'get'>
  readonly definitions: DefinitionSource
}

/**
 * Loads an account for calls: two statements, and the plan from memory.
 *
 * @throws Failure RESOURCE_NOT_FOUND, INTEGRATION_DISABLED, ACCOUNT_NOT_ACTIVE with the status in its metadata,
 * DEFINITION_INVALID when override and config no longer fit, SECRET_UNREADABLE
 */
export async function loadReadyAccount(
  deps: AccessDeps,
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<ReadyAccount> {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  if (!account.isEnabled) throw integrationDisabled(account.environmentIntegrationId)
  if (account.status !== 'active') throw notActive(account)
  return await withAccess(deps, tx, account)
}

/** What a call through the account needs, whatever its status. @throws Failure DEFINITION_INVALID, SECRET_UNREADABLE */
export async function withAccess(deps: AccessDeps, tx: Tx, account: AccountWithVersions): Promise<ReadyAccount> {
  const { plan, environmentVariables } = await deps.definitions.at(tx, account)
  const credentials = credentialsFrom(await deps.secrets.get(tx, accountSecrets(account)))
  const { id, environmentId, context, isSandbox, integrationName } = account
  const access = { id, environmentId, context, credentials, environmentVariables, isSandbox }
  return { account, integrationName, plan, access }
}

function credentialsFrom(texts: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, JSON.parse(text)]))
}

function notActive({ id, status }: IntegratedAccountRecord): Failure {
  return new Failure('ACCOUNT_NOT_ACTIVE', `the account is ${status}: only an active account can be called through`, {
    resource: { type: 'integrated_account', id },
    metadata: { status },
  })
}
