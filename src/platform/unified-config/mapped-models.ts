import { listMappedIntegrations, SHIPPED_MODEL_NAMES } from '../../engine/catalog/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import type { MappedAccount } from './sql/effective.ts'
import { selectMappedModels, selectModelsByIntegration } from './sql/mapped-models.ts'

/** The models of which the account's integration may have mapped resources, shipped and stored ones, sorted. */
export async function listMappedModels(tx: Db, account: MappedAccount): Promise<readonly string[]> {
  const shipped = shippedModelsOf(account.integrationName)
  return [...new Set([...shipped, ...(await selectMappedModels(tx, account))])].sort()
}

/** The models that an environment may have mapped for each of the integrations, without mappings of single accounts, sorted. */
export async function listMappedModelsByIntegration(
  tx: Db,
  environmentId: string,
  integrationNames: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (integrationNames.length === 0) return new Map()
  const stored = await selectModelsByIntegration(tx, environmentId, integrationNames)
  return new Map(
    integrationNames.map((name) => [
      name,
      [...new Set([...shippedModelsOf(name), ...(stored.get(name) ?? [])])].sort(),
    ]),
  )
}

function shippedModelsOf(integrationName: string): readonly string[] {
  return SHIPPED_MODEL_NAMES.filter((model) => listMappedIntegrations(model).includes(integrationName))
}
