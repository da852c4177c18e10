import { resolveConfig } from '../../engine/definitions/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { findEnvironmentIntegration, listInstallationChoices } from './sql/installations.ts'
import { findIntegration, findIntegrationByName } from './sql/integrations.ts'

/**
 * The config of the integration of that name, secrets masked: as it is installed in the environment, else as the team owns
 * it; `undefined` when it is neither.
 */
export async function findDefinitionByName(
  tx: Db,
  owner: { readonly teamId: string; readonly environmentId?: string | undefined },
  name: string,
): Promise<JsonObject | undefined> {
  const { teamId, environmentId } = owner
  return (
    (environmentId === undefined ? undefined : await findInstalled(tx, environmentId, name)) ??
    (await findOwned(tx, teamId, name))
  )
}

async function findInstalled(tx: Db, environmentId: string, name: string): Promise<JsonObject | undefined> {
  const choices = await listInstallationChoices(tx, environmentId)
  const installed = choices.find(({ integrationName }) => integrationName === name)
  if (installed === undefined) return undefined
  const integration = await findIntegration(tx, installed.integrationId)
  const installation = await findEnvironmentIntegration(tx, environmentId, installed.environmentIntegrationId)
  return resolveConfig(integration?.config ?? {}, installation?.override ?? {}).config
}

async function findOwned(tx: Db, teamId: string, name: string): Promise<JsonObject | undefined> {
  const owned = await findIntegrationByName(tx, teamId, name)
  return owned === undefined ? undefined : (await findIntegration(tx, owned.id))?.config
}
