import { etagMismatch, Failure, notFound } from '../base/index.ts'
import {
  deleteEnvironmentIntegration as deleteRow,
  findEnvironmentIntegration,
  type IntegrationRecord,
  listEnvironmentIntegrations,
  listInstallationsOf,
  refuseWhileUsed,
  type Scope,
  type Secrets,
  type Tx,
} from '../storage/index.ts'
import { overrideSecrets } from './secret-refs.ts'

/** Installations that are removed by force per look. */
const REMOVED_PER_LOOK = 100

/** Removes accounts, which belong to a room above this one. */
export interface AccountsOfInstallation {
  /** Removes every account of the installation with its credentials and what runs for it. */
  removeOf(tx: Tx, environmentId: string, environmentIntegrationId: string): Promise<void>
}

/** What removing installations needs. */
export interface RemovalDeps {
  readonly secrets: Pick<Secrets, 'remove'>
  readonly accounts: AccountsOfInstallation
}

/**
 * Removes an installation with its secrets, and with `force` its accounts. `tx` is a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH; RESOURCE_IN_USE while it has accounts and `force` is not set
 */
export async function deleteEnvironmentIntegration(
  deps: RemovalDeps,
  tx: Tx,
  { environmentId }: Pick<Scope, 'environmentId'>,
  input: { readonly id: string; readonly version?: number | undefined; readonly force?: boolean },
): Promise<void> {
  const { id, version, force = false } = input
  const stored = await findEnvironmentIntegration(tx, environmentId, id)
  if (stored === undefined) throw notFound('environment_integration', id)
  if (force) await deps.accounts.removeOf(tx, environmentId, id)
  const why = 'accounts are connected through this installation: delete them first, or set force to delete them with it'
  const remove = () => deleteRow(tx, environmentId, id, version)
  if (!(await refuseWhileUsed({ type: 'environment_integration', id, why }, remove)))
    throw etagMismatch('environment_integration', id)
  await deps.secrets.remove(tx, overrideSecrets(stored))
}

/**
 * Removes, by force, the installations of an integration in the environments of the team that owns it.
 *
 * @throws Failure RESOURCE_IN_USE when another team has it installed: what that team connected is not the owner's to delete
 */
export async function removeInstallationsOf(
  deps: RemovalDeps,
  tx: Tx,
  integration: Pick<IntegrationRecord, 'id' | 'teamId'>,
): Promise<void> {
  for (;;) {
    const found = await listInstallationsOf(tx, integration.id, REMOVED_PER_LOOK)
    for (const { environmentId, id, teamId } of found) {
      if (teamId !== integration.teamId) throw installedElsewhere(integration.id)
      await deleteEnvironmentIntegration(deps, tx, { environmentId }, { id, force: true })
    }
    if (found.length < REMOVED_PER_LOOK) return
  }
}

/** Removes, by force, every installation of an environment. */
export async function removeInstallationsIn(deps: RemovalDeps, tx: Tx, environmentId: string): Promise<void> {
  for (;;) {
    const page = { before: undefined, limit: REMOVED_PER_LOOK }
    const found = await listEnvironmentIntegrations(tx, environmentId, {}, page)
    for (const { id } of found) await deleteEnvironmentIntegration(deps, tx, { environmentId }, { id, force: true })
    if (found.length < REMOVED_PER_LOOK) return
  }
}

function installedElsewhere(id: string): Failure {
  const message =
    'another team has this integration installed, and force does not reach them: set sharing to deny instead'
  return new Failure('RESOURCE_IN_USE', message, { resource: { type: 'integration', id } })
}
