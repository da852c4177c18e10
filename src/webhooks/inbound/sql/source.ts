import { type Db, query, queryOne, rowSet, type Tx } from '../../../foundation/database/index.ts'
import {
  type EncryptedSecret,
  type SecretsColumn,
  secretsFromColumn,
  secretsSql,
} from '../../../foundation/secrets/index.ts'
import type { DefinitionVersions } from '../../../platform/integrations/index.ts'
import type { SourceKind } from '../inbound-event.ts'

const SOURCES = rowSet('kind text, id uuid')

/** The environments of accounts and installations, null for unknown ids. Uses integrated_account_id, environment_integration_id. */
export async function findEnvironmentsOfSources(
  tx: Db,
  sources: readonly { readonly kind: SourceKind; readonly id: string }[],
): Promise<readonly (string | null)[]> {
  const found = await query<{ readonly environmentId: string | null }>(
    tx,
    `select case wanted.kind
       when 'integrated_account' then (
         select a.environment_id from integrated_account a join environment_integration i
           on i.environment_id = a.environment_id and i.id = a.environment_integration_id
         where a.id = wanted.id and not i.is_hidden)
       else (select i.environment_id from environment_integration i where i.id = wanted.id and not i.is_hidden) end as environment_id
     from ${SOURCES.unnest} with ordinality as wanted (kind, id, position) order by position`,
    SOURCES.of(sources),
  )
  return found.map(({ environmentId }) => environmentId)
}

/** Locks the row of an account or installation until `tx` ends. @returns whether there is one. Uses primary keys. */
export async function lockSource(
  tx: Tx,
  { kind, environmentId, id }: { readonly kind: SourceKind; readonly environmentId: string; readonly id: string },
): Promise<boolean> {
  const sql = `select from ${kind} where environment_id = :environmentId and id = :id for no key update`
  return (await queryOne(tx, sql, { environmentId, id })) !== undefined
}

/** An installation with the secrets that handshakes brought. */
export interface InstallationSource extends DefinitionVersions {
  readonly secrets: readonly EncryptedSecret[]
}

/** Uses primary keys. */
export async function findInstallationSource(
  tx: Db,
  environmentId: string,
  id: string,
): Promise<InstallationSource | undefined> {
  const [found] = await query<DefinitionVersions & { readonly secrets: SecretsColumn }>(
    tx,
    `select integration.id as integration_id, integration.name as integration_name,
       integration.version as integration_version, installation.version as installation_version,
       installation.is_enabled, ${secretsSql('inbound_webhook', 'installation')} as secrets
     from environment_integration installation join integration on integration.id = installation.integration_id
     where installation.environment_id = :environmentId and installation.id = :id and not installation.is_hidden`,
    { environmentId, id },
  )
  return found === undefined ? undefined : { ...found, secrets: secretsFromColumn(found.secrets) }
}
