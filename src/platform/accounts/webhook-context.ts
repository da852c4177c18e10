import { Failure, notFound } from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import {
  canonicalJson,
  exceedsJsonSize,
  isJsonObject,
  JSON_DEPTH_MAX,
  type Json,
  type JsonObject,
} from '../../foundation/json/index.ts'
import { assertWrite } from './account.ts'
import { appendEventOf } from './account-events.ts'
import { assertNoReservedKeys, contextPatchFrom } from './context.ts'
import type { AccountDependencies } from './dependencies.ts'
import { type AccountRef, type AccountWithDefinition, findIntegratedAccount } from './sql/integrated-account.ts'
import { claimContextKeys } from './sql/webhook-context.ts'
import { updateAccount, withWholeContext } from './stored-context.ts'
import { accountSecretRef, webhookSecretName } from './stored-credentials.ts'

/** Characters of JSON that one webhook may change. */
const CHANGE_LENGTH_MAX = 64 * 1024
/** Characters of all secrets that webhooks have set for an account. */
const SECRETS_LENGTH_MAX = 64 * 1024
/** Characters of a key, which is indexed. */
const KEY_LENGTH_MAX = 512

/** What a webhook of the third party says about its account (`update_context`). */
export interface WebhookContextChange {
  /** As in `IntegratedAccountChange`: null removes a key. */
  readonly values: JsonObject
  /** Keys that are kept encrypted, with the credentials: `{{connection.webhook.<key>}}`. They never appear in the context. */
  readonly secretKeys: readonly string[]
  /** UUIDv7 of the request, made when it was received. */
  readonly inboundEventId: string
}

/**
 * Merges what an authenticated webhook says into the context of its account. Keys that a request received later has set stay as
 * they are. Values that are stored already change nothing, so that a webhook that repeats itself causes no further events.
 *
 * @returns whether anything changed
 * @throws Failure RESOURCE_NOT_FOUND, CONTEXT_KEY_RESERVED as `updateIntegratedAccount`, INVALID_FIELD for values that are too
 * large or nested too deep
 */
export async function updateContextFromWebhook(
  deps: Pick<AccountDependencies, 'secrets' | 'definitions' | 'contextValues'>,
  tx: Tx,
  ref: AccountRef,
  { values, secretKeys, inboundEventId }: WebhookContextChange,
): Promise<boolean> {
  assertSize(values)
  const account = await findIntegratedAccount(tx, ref.environmentId, ref.id)
  if (account === undefined) throw notFound('integrated_account', ref.id)
  const current = await claimContextKeys(tx, ref, inboundEventId, Object.keys(values))
  const secret = pick(values, (key) => current.has(key) && secretKeys.includes(key))
  const visible = pick(values, (key) => current.has(key) && !secretKeys.includes(key))
  const areSecretsNew = await storeSecrets(deps, tx, account, secret)
  return (await storeContext(deps, tx, account, visible)) || areSecretsNew
}

async function storeSecrets(
  { secrets }: Pick<AccountDependencies, 'secrets'>,
  tx: Db,
  account: AccountWithDefinition,
  values: JsonObject,
): Promise<boolean> {
  if (Object.keys(values).length === 0) return false
  const ref = accountSecretRef(account)
  const stored = await secrets.get(tx, ref)
  const changed = Object.entries(values).filter(([key, value]) => {
    return stored[webhookSecretName(key)] !== (value === null ? undefined : JSON.stringify(value))
  })
  assertSecretsSize({
    ...stored,
    ...Object.fromEntries(changed.map(([key, value]) => [webhookSecretName(key), JSON.stringify(value)])),
  })
  const removed = changed.filter(([, value]) => value === null).map(([key]) => webhookSecretName(key))
  const given = changed.filter(([, value]) => value !== null)
  if (removed.length > 0) await secrets.remove(tx, ref, removed)
  await secrets.put(
    tx,
    ref,
    Object.fromEntries(given.map(([key, value]) => [webhookSecretName(key), JSON.stringify(value)])),
  )
  return changed.length > 0
}

async function storeContext(
  deps: Pick<AccountDependencies, 'secrets' | 'definitions' | 'contextValues'>,
  tx: Tx,
  account: AccountWithDefinition,
  values: JsonObject,
): Promise<boolean> {
  if (Object.keys(values).length === 0) return false
  assertNoReservedKeys(values)
  const { context } = await withWholeContext(deps, tx, account)
  const changed = pick(values, (key, value) => canonicalJson(context[key] ?? null) !== canonicalJson(value))
  if (Object.keys(changed).length === 0) return false
  await assertWrite(deps, tx, account, changed, 'webhook')
  const updated = await updateAccount(deps, tx, account, { context: contextPatchFrom(changed) })
  if (updated === undefined) {
    assertNoReservedKeys(changed, Object.keys(await deps.secrets.get(tx, accountSecretRef(account))))
    throw notFound('integrated_account', account.id)
  }
  await appendEventOf(tx, updated, 'updated')
  return true
}

function assertSize(values: JsonObject): void {
  if (!isJsonObject(values) || exceedsJsonSize(values, CHANGE_LENGTH_MAX, JSON_DEPTH_MAX))
    throw new Failure(
      'INVALID_FIELD',
      `update_context must be an object of at most ${CHANGE_LENGTH_MAX} characters of JSON and ${JSON_DEPTH_MAX} levels`,
    )
  if (Object.keys(values).some((key) => key.length > KEY_LENGTH_MAX))
    throw new Failure('INVALID_FIELD', `a key of update_context is longer than ${KEY_LENGTH_MAX} characters`)
}

/** @throws Failure INVALID_FIELD when webhooks would have set too many secrets */
function assertSecretsSize(secrets: Readonly<Record<string, string>>): void {
  const ofWebhooks = Object.entries(secrets).filter(([name]) => name.startsWith(webhookSecretName('')))
  const length = ofWebhooks.reduce((sum, [name, text]) => sum + name.length + text.length, 0)
  if (length > SECRETS_LENGTH_MAX)
    throw new Failure(
      'INVALID_FIELD',
      `the secrets that webhooks set have more than ${SECRETS_LENGTH_MAX} characters together`,
    )
}

function pick(values: JsonObject, isWanted: (key: string, value: Json) => boolean): JsonObject {
  return Object.fromEntries(Object.entries(values).filter(([key, value]) => isWanted(key, value)))
}
