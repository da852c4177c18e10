import { newId } from '../../../foundation/base/index.ts'
import { type Db, jsonb, queryOne } from '../../../foundation/database/index.ts'
import { exceedsJsonSize } from '../../../foundation/json/index.ts'
import type { EventType } from '../../outbox/catalog.ts'
import { payloadSql } from '../../outbox/payload.ts'
import { recordEventsSql } from '../../outbox/sql.ts'
import {
  ACCOUNT_DETAIL_FIELDS,
  type AccountRef,
  type AccountWithDefinition,
  COLUMNS,
  type ContextPatch,
  HAS_WEBHOOKS,
  INSTALLATION,
  OF_ACCOUNT,
  RETRY_ACTIVATION,
  VERSIONS,
} from './integrated-account.ts'

/** The versions that an effective definition is made of. */
export type DefinitionVersionsOfAccount = Pick<AccountWithDefinition, 'integrationVersion' | 'installationVersion'>

/** Size of a context, of its change and of `last_action_result` up to which an event repeats them whole, in bytes of JSON. */
const JSON_BYTES_MAX = 16 * 1024
const TYPE: EventType = 'integrated_account:updated'

/** SQL: `accountEventPayload` of a row of `changed`. */
const PAYLOAD = payloadSql('IntegratedAccountEventPayload', ACCOUNT_DETAIL_FIELDS, {
  last_forbidden_error: 'last_forbidden_error',
})

const UPDATE_WITH_EVENT = `with changed as (
       update integrated_account account set tenant_id = coalesce(:tenantId, account.tenant_id),
         context = (account.context || :contextKeys::jsonb) - :removedKeys::text[],
         ${RETRY_ACTIVATION}, updated_at = now(), version = account.version + 1
       from ${INSTALLATION}
       where account.environment_id = :environmentId and account.id = :id
         and account.version = coalesce(:version, account.version) and ${OF_ACCOUNT}
         and integration.version = coalesce(:integrationVersion, integration.version)
         and installation.version = coalesce(:installationVersion, installation.version)
         and account.object_store_context_fields = '{}'
         and octet_length(account.context::text) <= ${JSON_BYTES_MAX}
         and octet_length(account.last_action_result::text) <= ${JSON_BYTES_MAX}
         and not exists (select from secret where owner_id = account.environment_id
           and subject_type = 'integrated_account' and subject_id = account.id and secret.name = any(:keyNames))
       returning ${COLUMNS}, ${VERSIONS}, ${HAS_WEBHOOKS}
     ), change_event as (
       select environment_id, :eventId::uuid as id, '${TYPE}' as type, id as subject_id,
         id as integrated_account_id, null::uuid as except_webhook_id, false as is_test, ${PAYLOAD} as payload
       from changed
     ), ${recordEventsSql('change_event')}
     select * from changed`

/**
 * `updateIntegratedAccountRow` and its event in one statement, which needs no transaction, for an account of usual size without
 * context keys in the object store. Uses primary keys.
 *
 * @param known versions of the account's definition; with others nothing is changed. Absent: any
 * @returns `undefined` as `updateIntegratedAccountRow`, and for any other account: nothing was changed
 */
export async function updateWithEvent(
  tx: Db,
  { environmentId, id }: AccountRef,
  patch: {
    readonly tenantId: string | undefined
    readonly context: ContextPatch
    readonly version: number | undefined
  },
  known?: DefinitionVersionsOfAccount,
): Promise<AccountWithDefinition | undefined> {
  const { keys, removed } = patch.context
  if (exceedsJsonSize(keys, JSON_BYTES_MAX)) return undefined
  return await queryOne(tx, UPDATE_WITH_EVENT, {
    tenantId: patch.tenantId ?? null,
    contextKeys: jsonb(keys),
    removedKeys: removed,
    environmentId,
    id,
    version: patch.version ?? null,
    integrationVersion: known?.integrationVersion ?? null,
    installationVersion: known?.installationVersion ?? null,
    keyNames: Object.keys(keys),
    eventId: newId(),
  })
}
