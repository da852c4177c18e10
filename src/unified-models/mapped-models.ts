import { listMappedIntegrations, SHIPPED_MODEL_NAMES } from '../catalog/index.ts'
import type { Tx } from '../database/index.ts'
import type { MappedAccount } from './sql/effective.ts'
import { selectMappedModels } from './sql/mapped-models.ts'

/** The models of which the account's integration may have mapped resources, shipped and stored ones, sorted. */
export async function listMappedModels(tx: Tx, account: MappedAccount): Promise<readonly string[]> {
  const shipped = SHIPPED_MODEL_NAMES.filter((model) => listMappedIntegrations(model).includes(account.integrationName))
  return [...new Set([...shipped, ...(await selectMappedModels(tx, account))])].sort()
}
