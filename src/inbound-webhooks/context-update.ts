import { type AccountDependencies, updateContextFromWebhook } from '../accounts/index.ts'
import { canonicalJson, Failure, isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import type { Database, Tx } from '../database/index.ts'
import { type InboundSource, installationSecretRef } from './source.ts'

/** What storing the result of a handshake takes. */
export interface ContextUpdateDeps {
  readonly database: Database
  readonly accounts: Pick<AccountDependencies, 'secrets' | 'contextValues'>
  /** Whether a request of this service that makes or renews a subscription of the account is under way. */
  readonly isSubscribing: (source: InboundSource) => Promise<boolean>
}

/** Why an update is not made, for the owner of the definition; `undefined`: it was made. */
type UpdateProblem = string | undefined

/**
 * Makes the update that a handshake asks for.
 *
 * A request that is not authenticated may set what has no value yet, as the secret of a first handshake. It replaces a value
 * only while the account is being connected or this service is asking the third party for a subscription: otherwise any
 * sender could put a secret of its own in place of the agreed one.
 */
export async function updateInHandshake(
  deps: ContextUpdateDeps,
  source: InboundSource,
  update: JsonObject,
  isAuthenticated: boolean,
): Promise<UpdateProblem> {
  const taken = Object.keys(update).filter((key) => isReplaced(source, key, update[key] ?? null))
  if (taken.length > 0 && !isAuthenticated && !source.isConnecting && !(await deps.isSubscribing(source)))
    return `the handshake would replace ${taken.join(', ')} without a valid signature`
  try {
    await deps.database.transaction((tx) => applyContextUpdate(deps, tx, source, update))
    return undefined
  } catch (error) {
    if (error instanceof Failure && ['CONTEXT_KEY_RESERVED', 'INVALID_FIELD'].includes(error.reason))
      return error.publicMessage
    throw error
  }
}

/**
 * Merges keys into the context of the source's account, those of `secret_context` encrypted. An installation has no context: all
 * its keys are kept encrypted, as `{{connection.webhook.<key>}}`. `tx` is a transaction.
 *
 * @throws Failure CONTEXT_KEY_RESERVED, INVALID_FIELD; RESOURCE_NOT_FOUND when the account has been deleted
 */
async function applyContextUpdate(
  { accounts }: Pick<ContextUpdateDeps, 'accounts'>,
  tx: Tx,
  { environmentId, id, integratedAccountId, webhook }: InboundSource,
  update: JsonObject,
): Promise<void> {
  if (integratedAccountId !== undefined) {
    const change = { values: update, secretKeys: [...webhook.secretContext] }
    await updateContextFromWebhook(accounts, tx, { environmentId, id: integratedAccountId }, change)
    return
  }
  const ref = installationSecretRef(environmentId, id)
  const entries = Object.entries(update)
  const removed = entries.filter(([, value]) => value === null).map(([key]) => key)
  if (removed.length > 0) await accounts.secrets.remove(tx, ref, removed)
  const given = entries.filter(([, value]) => value !== null)
  await accounts.secrets.put(tx, ref, Object.fromEntries(given.map(([key, value]) => [key, JSON.stringify(value)])))
}

/** Whether a key has another value now. */
function isReplaced({ values, webhook, integratedAccountId }: InboundSource, key: string, value: Json): boolean {
  const stored = values.connection?.webhook
  const isSecret = integratedAccountId === undefined || webhook.secretContext.has(key)
  const present = isSecret ? memberOf(stored, key) : memberOf(values.context, key)
  return present !== undefined && canonicalJson(present) !== canonicalJson(value)
}

function memberOf(values: Json | undefined, key: string): Json | undefined {
  return isJsonObject(values) && Object.hasOwn(values, key) ? values[key] : undefined
}
