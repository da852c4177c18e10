import { notFound } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import { exceedsJsonSize, type JsonObject } from '../../foundation/json/index.ts'
import { appendEvents } from '../outbox/append-events.ts'
import type { EventType } from '../outbox/catalog.ts'
import { payloadOf } from '../outbox/payload.ts'
import {
  ACCOUNT_DETAIL_FIELDS,
  type AccountRef,
  type AccountWithDefinition,
  findIntegratedAccount,
} from './sql/integrated-account.ts'
import { splitContext } from './stored-context.ts'

/** Longest context that an event repeats, in characters of JSON. */
const CONTEXT_LENGTH_MAX = 64 * 1024

/** An event about an account, without its subject. */
export type AccountEventName =
  Extract<EventType, `integrated_account:${string}`> extends `integrated_account:${infer Name}` ? Name : never

/**
 * Reads an account and records an event about it. `tx` is the transaction of the change.
 *
 * @param details further fields of the payload, in the names of the contract
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function appendAccountEvent(
  tx: Tx,
  { environmentId, id }: AccountRef,
  name: Exclude<AccountEventName, 'deleted'>,
  details: JsonObject = {},
): Promise<void> {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  await appendEventOf(tx, account, name, details)
}

/** Records an event about an account as it was just read; of a deleted one before. `tx` is the transaction of the change. */
export async function appendEventOf(
  tx: Tx,
  account: AccountWithDefinition,
  name: AccountEventName,
  details: JsonObject = {},
): Promise<void> {
  const payload =
    name === 'deleted' ? identityPayload(withIntegration(account)) : { ...accountEventPayload(account), ...details }
  const { environmentId, id } = account
  await appendEvents(tx, [
    { environmentId, type: `integrated_account:${name}`, subjectId: id, integratedAccountId: id, payload },
  ])
}

/** What tells a receiver which account it is: all that `deleted` contains. */
const identityPayload = payloadOf('IntegratedAccountDeletedEventPayload')
const wholePayload = payloadOf('IntegratedAccountEventPayload', [
  ...ACCOUNT_DETAIL_FIELDS,
  // It is stored as it is shown.
  'last_forbidden_error',
])

function withIntegration(account: AccountWithDefinition) {
  return { ...account, integration: { id: account.integrationId, name: account.integrationName } }
}

/**
 * The payload of all other events: the account in the names of the contract, times in RFC 3339, without credentials. Context keys
 * in the object store are left out, and a context of more than 64 KiB is left out whole: read the account.
 */
export function accountEventPayload(account: AccountWithDefinition): JsonObject {
  const { inline } = splitContext(account, account.context)
  const context = exceedsJsonSize(inline, CONTEXT_LENGTH_MAX) ? undefined : inline
  return {
    ...wholePayload({ ...withIntegration(account), context }),
    last_forbidden_error: account.lastForbiddenError && { ...account.lastForbiddenError },
  }
}
