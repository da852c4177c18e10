import type { Tx } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { EnvironmentScope } from '../tenancy/sql/environments.ts'
import {
  createEnvironmentIntegration,
  type EnvironmentIntegration,
  getEnvironmentIntegration,
  updateEnvironmentIntegration,
} from './installation.ts'
import { createIntegration, type IntegrationInput, updateIntegration } from './integration.ts'
import { findEnvironmentIntegrationOf } from './sql/installations.ts'
import { findIntegrationByName } from './sql/integrations.ts'
import type { IntegrationDeps } from './stored-config.ts'

/** A definition, and the override of its installation. */
export interface UpsertDefinitionInput extends IntegrationInput {
  /** A merge patch (RFC 7396) to the override of the installation, or with `replaceOverride` the whole; absent: unchanged. */
  readonly override?: JsonObject | undefined
  readonly replaceOverride?: boolean | undefined
  /** When the override sends requests to other hosts, the accounts have to be connected again. */
  readonly reauthorizeAccounts?: boolean | undefined
  /** Absent: unchanged; a new installation is not shown. */
  readonly showInCatalog?: boolean | undefined
}

/** The installation of an upserted definition. */
export interface UpsertedDefinition {
  readonly installation: EnvironmentIntegration
  /** True when the team had an integration of that name, whose config was replaced. */
  readonly isReplaced: boolean
}

/**
 * Creates or replaces the team's integration of that name and installs it in the environment; idempotent. An existing
 * installation stays, with its accounts.
 *
 * @throws Failure as `createIntegration` and `createEnvironmentIntegration` do; ETAG_MISMATCH when another call changes
 * the same integration concurrently
 */
export async function upsertDefinition(
  deps: IntegrationDeps,
  tx: Tx,
  scope: EnvironmentScope,
  { override, replaceOverride = false, reauthorizeAccounts = false, showInCatalog, ...input }: UpsertDefinitionInput,
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
  const given = { integrationId: id, override, replaceOverride, reauthorizeAccounts, showInCatalog }
  const installation = await upsertInstallation(deps, tx, scope, given)
  return { installation, isReplaced: existing !== undefined }
}

async function upsertInstallation(
  deps: IntegrationDeps,
  tx: Tx,
  scope: EnvironmentScope,
  given: Required<
    Pick<UpsertDefinitionInput, 'override' | 'replaceOverride' | 'reauthorizeAccounts' | 'showInCatalog'>
  > & {
    readonly integrationId: string
  },
): Promise<EnvironmentIntegration> {
  const { integrationId, ...change } = given
  const { override, showInCatalog } = change
  const existing = await findEnvironmentIntegrationOf(tx, scope.environmentId, integrationId)
  if (existing === undefined)
    return await createEnvironmentIntegration(deps, tx, scope, { integrationId, override, showInCatalog })
  const { id } = existing
  if (override === undefined && showInCatalog === undefined) return await getEnvironmentIntegration(tx, scope, id)
  return await updateEnvironmentIntegration(deps, tx, scope, { id, ...change })
}
