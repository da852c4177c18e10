import type { JsonObject } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import type { EnvironmentScope } from '../tenancy/index.ts'
import {
  createEnvironmentIntegration,
  type EnvironmentIntegration,
  type EnvironmentIntegrationDeps,
  getEnvironmentIntegration,
  updateEnvironmentIntegration,
} from './installation.ts'
import { createIntegration, type IntegrationDeps, type IntegrationInput, updateIntegration } from './integration.ts'
import { findEnvironmentIntegrationOf } from './sql/installations.ts'
import { findIntegrationByName } from './sql/integrations.ts'

/** A definition as it should be, and where it should be installed. */
export interface UpsertDefinitionInput extends IntegrationInput {
  /** The whole override of the installation; absent: the one there is, or none. */
  readonly override?: JsonObject | undefined
}

/** What putting a definition came to. */
export interface UpsertedDefinition {
  readonly installation: EnvironmentIntegration
  /** Whether the team had an integration of that name already, whose config was replaced. */
  readonly isReplaced: boolean
}

/**
 * Makes the team's integration of that name what the definition says and installs it in the environment. Said again, it
 * changes what differs; an installation that is there stays, with its accounts. `tx` is a transaction.
 *
 * @throws Failure as `createIntegration` and `createEnvironmentIntegration` do; ETAG_MISMATCH when somebody else changes
 * the same integration meanwhile
 */
export async function upsertDefinition(
  deps: IntegrationDeps & EnvironmentIntegrationDeps,
  tx: Tx,
  scope: EnvironmentScope,
  { override, ...input }: UpsertDefinitionInput,
): Promise<UpsertedDefinition> {
  const existing = await findIntegrationByName(tx, scope.teamId, input.name)
  const { id } =
    existing === undefined
      ? await createIntegration(deps, tx, scope.teamId, input)
      : await updateIntegration(deps, tx, scope.teamId, {
          ...input,
          id: existing.id,
          version: existing.version,
          replaceConfig: true,
        })
  return { installation: await upsertInstallation(deps, tx, scope, id, override), isReplaced: existing !== undefined }
}

async function upsertInstallation(
  deps: EnvironmentIntegrationDeps,
  tx: Tx,
  scope: EnvironmentScope,
  integrationId: string,
  override: JsonObject | undefined,
): Promise<EnvironmentIntegration> {
  const existing = await findEnvironmentIntegrationOf(tx, scope.environmentId, integrationId)
  if (existing === undefined) return await createEnvironmentIntegration(deps, tx, scope, { integrationId, override })
  const { id } = existing
  if (override === undefined) return await getEnvironmentIntegration(tx, scope, id)
  return await updateEnvironmentIntegration(deps, tx, scope, { id, override, replaceOverride: true })
}
