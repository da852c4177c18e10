import { type Db, query } from '../../../foundation/database/index.ts'
import type { IntegratedAccountRecord } from './integrated-account.ts'

/** An account that a value leads to. */
export interface AccountOfValue extends Pick<IntegratedAccountRecord, 'id' | 'tenantId'> {
  /** One of the values that were looked up. */
  readonly value: string
  /** The third party named the same value as the id of the account (`identity`): it does not come from a form or a redirect alone. */
  readonly isConfirmed: boolean
}

/**
 * Accounts of an installation whose context has one of the values under a key: as text, as number, or in a list of those.
 * By value and id; keys in the object store are not searched. Uses integrated_account_lookup, whose hashes are checked again.
 *
 * @param limit accounts in all
 */
export async function findAccountsByContext(
  tx: Db,
  installation: { readonly environmentId: string; readonly environmentIntegrationId: string },
  field: string,
  values: readonly string[],
  limit: number,
): Promise<readonly AccountOfValue[]> {
  return await query(
    tx,
    `select wanted.value, account.id, account.tenant_id,
       coalesce(account.external_id = wanted.value, false) as is_confirmed
     from unnest(:values::text[]) as wanted (value)
     join integrated_account account
       on context_lookup_keys(account.environment_integration_id, account.context)
         @> array[context_lookup_key(:environmentIntegrationId::uuid, :field::text, wanted.value)]
     where account.environment_id = :environmentId and account.environment_integration_id = :environmentIntegrationId
       and (account.context ->> :field = wanted.value or exists (
         select from jsonb_array_elements(
           case jsonb_typeof(account.context -> :field) when 'array' then account.context -> :field else '[]' end
         ) item where item #>> '{}' = wanted.value))
     order by wanted.value, account.id
     limit :limit`,
    { ...installation, field, values, limit },
  )
}
