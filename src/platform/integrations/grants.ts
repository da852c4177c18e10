import { notFound } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import { findTeam } from '../tenancy/sql/teams.ts'
import {
  deleteIntegrationGrantRow as deleteGrantRow,
  findIntegration,
  findIntegrationGrant,
  type GrantCursor,
  type IntegrationGrantRecord,
  insertIntegrationGrant,
  selectIntegrationGrants as listGrantRows,
} from './sql/integrations.ts'

/** An integration and the team that may install it. */
export interface GrantPair {
  readonly integrationId: string
  readonly teamId: string
}

/**
 * Lets another team install an integration whose sharing is `ask`; a repeated call returns the existing grant.
 *
 * @throws Failure RESOURCE_NOT_FOUND for an integration that the owner does not own, or an unknown team
 */
export async function createIntegrationGrant(
  tx: Db,
  ownerId: string,
  { integrationId, teamId }: GrantPair,
): Promise<IntegrationGrantRecord> {
  await assertOwned(tx, ownerId, integrationId)
  if ((await findTeam(tx, teamId)) === undefined) throw notFound('team', teamId)
  await insertIntegrationGrant(tx, integrationId, teamId)
  const grant = await findIntegrationGrant(tx, integrationId, teamId)
  if (grant === undefined) throw notFound('integration', integrationId)
  return grant
}

/** At most `limit` grants after the cursor, newest first. @throws Failure RESOURCE_NOT_FOUND */
export async function listIntegrationGrants(
  tx: Db,
  ownerId: string,
  integrationId: string,
  page: { readonly after: GrantCursor | undefined; readonly limit: number },
): Promise<readonly IntegrationGrantRecord[]> {
  await assertOwned(tx, ownerId, integrationId)
  return await listGrantRows(tx, integrationId, page.after, page.limit)
}

/** Revokes a grant; installations made under it stay. @throws Failure RESOURCE_NOT_FOUND, also when there is no grant */
export async function deleteIntegrationGrant(
  tx: Db,
  ownerId: string,
  { integrationId, teamId }: GrantPair,
): Promise<void> {
  await assertOwned(tx, ownerId, integrationId)
  if (!(await deleteGrantRow(tx, integrationId, teamId))) throw notFound('integration_grant', teamId)
}

async function assertOwned(tx: Db, ownerId: string, integrationId: string): Promise<void> {
  const integration = await findIntegration(tx, integrationId)
  if (integration?.teamId !== ownerId) throw notFound('integration', integrationId)
}
