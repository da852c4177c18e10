import { type Db, execute, query, queryOne } from '../../../foundation/database/index.ts'

/** Names an installation. */
export interface InstallationRef {
  readonly environmentId: string
  readonly id: string
}

/**
 * At most `limit` installations, after the given one, whose definition or override names an end of the client's secret, or did
 * when it was last looked at. Reads every installation: for a loop that comes seldom.
 */
export async function listInstallationsWithSecretExpiry(
  tx: Db,
  after: InstallationRef | undefined,
  limit: number,
): Promise<readonly InstallationRef[]> {
  return await query(
    tx,
    `select installation.environment_id, installation.id
     from environment_integration installation join integration on integration.id = installation.integration_id
     where (installation.environment_id, installation.id) > (:environmentId::uuid, :id::uuid)
       and not installation.is_hidden and (installation.client_secret_expires_at is not null
         or installation.override::text like '%client_secret_expires_at%'
         or integration.config::text like '%client_secret_expires_at%')
     order by installation.environment_id, installation.id limit :limit`,
    { environmentId: after?.environmentId ?? NIL, id: after?.id ?? NIL, limit },
  )
}

const NIL = '00000000-0000-0000-0000-000000000000'

/** The installation's version (etag) stays. Uses the primary key. */
export async function storeClientSecretExpiry(
  tx: Db,
  { environmentId, id }: InstallationRef,
  expiresAt: Date | undefined,
): Promise<void> {
  await execute(
    tx,
    `update environment_integration set client_secret_expires_at = :expiresAt::timestamptz
     where environment_id = :environmentId and id = :id and client_secret_expires_at is distinct from :expiresAt::timestamptz`,
    { environmentId, id, expiresAt: expiresAt ?? null },
  )
}

/**
 * Whether the end of the secret is less than `aheadMs` away and was not announced yet. One statement: of concurrent callers one
 * announces it. Uses the primary key.
 */
export async function claimClientSecretWarning(
  tx: Db,
  { environmentId, id }: InstallationRef,
  aheadMs: number,
): Promise<boolean> {
  const claimed = await queryOne(
    tx,
    `update environment_integration set client_secret_warned_for = client_secret_expires_at
     where environment_id = :environmentId and id = :id
       and client_secret_expires_at <= now() + :aheadMs * interval '1 millisecond'
       and client_secret_warned_for is distinct from client_secret_expires_at
     returning id`,
    { environmentId, id, aheadMs },
  )
  return claimed !== undefined
}
