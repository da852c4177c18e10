import { type Db, jsonb, type Tx } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import { type DueResult, type DueTable, type Lease, updateHeld } from '../../../foundation/queue/index.ts'
import { type AccountRef, isKeptSql } from './integrated-account.ts'

/** A connecting account that is to be activated. */
export interface Activation extends AccountRef {
  readonly attempts: number
}

/** Activations. A lease also ends when the account is reconnected. Uses integrated_account_connecting. */
export const ACTIVATIONS: DueTable<Activation> = {
  table: 'integrated_account',
  columns: { environmentId: 'environment_id', id: 'id', attempts: 'connecting_tries' },
  key: ['environmentId', 'id'],
  due: 'connecting_due_at',
  leaseId: 'connecting_lease_id',
  condition: `status = 'connecting' and ${isKeptSql('integrated_account', 'id')}`,
}

const WITH_RESULT = 'last_action_result = last_action_result || :result::jsonb'

/** Stores the result of a phase, in which the values of the same keys are replaced; returns whether the lease is held. The account's version (etag) stays. */
export async function storePhaseResult(tx: Db, lease: Lease<Activation>, result: JsonObject): Promise<boolean> {
  return await updateHeld(tx, ACTIVATIONS, lease, WITH_RESULT, { result: jsonb(result) })
}

/** Locks the account, if the activation's lease is held, until the transaction ends; returns whether it is. Uses the primary key. */
export async function lockActivation(tx: Tx, { environmentId, id, leaseId }: Lease<AccountRef>): Promise<boolean> {
  const account = tx('integrated_account').where({ environment_id: environmentId, id, connecting_lease_id: leaseId })
  return (await account.forUpdate().first('id')) !== undefined
}

/** Stores the id that the third party gives the account, while the lease is held. */
export async function storeExternalId(tx: Db, lease: Lease<Activation>, externalId: string): Promise<void> {
  await updateHeld(tx, ACTIVATIONS, lease, 'external_id = coalesce(external_id, :externalId)', { externalId })
}

/** What an account shows after an attempt. @param error null: what it showed before */
export function showing(error: string | null, result: JsonObject): Pick<DueResult, 'set' | 'values'> {
  const set = `last_error = coalesce(:error, last_error), ${WITH_RESULT}`
  return { set, values: { error, result: jsonb(result) } }
}
