import type { IntegrationCache } from '../integrations/index.ts'
import {
  type AccountWithDefinition,
  findIntegrations,
  type IntegratedAccountRecord,
  type IntegrationRecord,
  type Tx,
} from '../storage/index.ts'

/** An account with the integration it is of, without that one's team and installations. */
export interface IntegratedAccount extends IntegratedAccountRecord {
  readonly integration: IntegrationRecord
}

/** Adds the integration from memory: the same object for every account of the same version. */
export async function withIntegration(
  integrations: IntegrationCache,
  tx: Tx,
  account: AccountWithDefinition,
): Promise<IntegratedAccount> {
  const integration = await integrations.find(tx, account.integrationId, account.integrationVersion)
  return { ...account, integration: integration ?? integrationMissing(account.integrationId) }
}

/** Adds the integrations of a list, in one statement. */
export async function withIntegrations(
  tx: Tx,
  accounts: readonly AccountWithDefinition[],
  withConfig: boolean,
): Promise<readonly IntegratedAccount[]> {
  if (accounts.length === 0) return []
  const ids = new Set(accounts.map(({ integrationId }) => integrationId))
  const found = await findIntegrations(tx, [...ids], withConfig)
  const byId = new Map(found.map((integration) => [integration.id, integration]))
  return accounts.map((account) => ({
    ...account,
    integration: byId.get(account.integrationId) ?? integrationMissing(account.integrationId),
  }))
}

function integrationMissing(integrationId: string): never {
  throw new Error(`no integration ${integrationId}, of which there is an account`)
}
