import { hasSecret } from '../../engine/formats/index.ts'
import { Failure } from '../../foundation/base/index.ts'
import type { Database, Db, Tx } from '../../foundation/database/index.ts'
import { canonicalJson, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { type AccountDependencies, updateContextFromWebhook } from '../../platform/accounts/index.ts'
import { type InboundSource, installationSecretRef, type SourceReader, scopeOf } from './source.ts'

/** What storing the result of a handshake takes. */
export interface ContextUpdateDeps {
  readonly database: Database
  readonly sources: Pick<SourceReader, 'lock'>
  readonly accounts: Pick<AccountDependencies, 'secrets' | 'definitions' | 'contextValues'>
  /** Whether a request of this service that makes or renews a subscription of the account is under way. */
  readonly isSubscribing: (tx: Db, source: InboundSource) => Promise<boolean>
}

/** Why an update is not made, for the owner of the definition; `undefined`: it was made. */
type UpdateProblem = string | undefined

/**
 * Makes the update that a handshake asks for. What is stored is read again with its row locked, so that of concurrent handshakes
 * the second sees what the first has agreed, however long its request took.
 */
export async function updateInHandshake(
  deps: ContextUpdateDeps,
  { source, update, isAuthenticated, inboundEventId }: HandshakeUpdate,
): Promise<UpdateProblem> {
  try {
    return await deps.database.transaction(async (tx) => {
      const current = await deps.sources.lock(tx, source)
      if (current === undefined) return 'the account or installation was deleted or disabled meanwhile'
      const problem = isAuthenticated ? undefined : await findProblem(deps, tx, current, update)
      if (problem === undefined) await applyContextUpdate(deps, tx, current, update, inboundEventId)
      return problem
    })
  } catch (error) {
    if (error instanceof Failure && ['CONTEXT_KEY_RESERVED', 'INVALID_FIELD'].includes(error.reason))
      return error.publicMessage
    throw error
  }
}

/** An update, and the source as it was when the request was verified. */
interface HandshakeUpdate {
  readonly source: InboundSource
  readonly update: JsonObject
  readonly isAuthenticated: boolean
  /** Under which the request is stored. */
  readonly inboundEventId: string
}

/**
 * Why a request that is not authenticated may not make an update. It may while the account is being connected or this service is
 * asking the third party for a subscription, and at the address of an installation as long as its keys have no value; never
 * while requests are verified with a secret from elsewhere. Otherwise any sender could plant a secret of its own.
 */
async function findProblem(
  deps: ContextUpdateDeps,
  tx: Db,
  source: InboundSource,
  update: JsonObject,
): Promise<UpdateProblem> {
  const changed = Object.keys(update).filter((key) => isChanged(source, key, update[key] ?? null))
  if (changed.length === 0) return undefined
  const { verify, signature } = source.webhook
  if (verify !== undefined && signature !== undefined && hasSecret(signature, scopeOf(without(source, changed))))
    return `the handshake would set ${changed.join(', ')} without a valid signature, although requests have a secret already`
  const isNew = changed.every((key) => storedValue(source, key) === undefined)
  if (source.integratedAccountId === undefined && isNew) return undefined
  if (source.isConnecting || (await deps.isSubscribing(tx, source))) return undefined
  return `the handshake would ${isNew ? 'set' : 'replace'} ${changed.join(', ')} without a valid signature, while the account is neither being connected nor subscribed`
}

/**
 * Merges keys into the context of the source's account, those of `secret_context` encrypted. An installation has no context: all
 * its keys are kept encrypted, as `{{connection.webhook.<key>}}`.
 *
 * @throws Failure CONTEXT_KEY_RESERVED, INVALID_FIELD; RESOURCE_NOT_FOUND when the account has been deleted
 */
async function applyContextUpdate(
  { accounts }: Pick<ContextUpdateDeps, 'accounts'>,
  tx: Tx,
  { environmentId, id, integratedAccountId, webhook }: InboundSource,
  update: JsonObject,
  inboundEventId: string,
): Promise<void> {
  if (integratedAccountId !== undefined) {
    const change = { values: update, secretKeys: [...webhook.secretContext], inboundEventId }
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

function isChanged(source: InboundSource, key: string, value: Json): boolean {
  return canonicalJson(storedValue(source, key) ?? null) !== canonicalJson(value)
}

function storedValue(source: InboundSource, key: string): Json | undefined {
  const { values } = source
  return memberOf(isSecretKey(source, key) ? values.connection?.webhook : values.context, key)
}

function isSecretKey({ webhook, integratedAccountId }: InboundSource, key: string): boolean {
  return integratedAccountId === undefined || webhook.secretContext.has(key)
}

/** A source as if keys of an update had no value. */
function without(source: InboundSource, keys: readonly string[]): Pick<InboundSource, 'values'> {
  const { context, credentials, connection } = source.values
  const webhook = omit(credentials.webhook, (key) => isSecretKey(source, key) && keys.includes(key))
  const values = {
    ...source.values,
    context: omit(context, (key) => !isSecretKey(source, key) && keys.includes(key)),
    credentials: { ...credentials, webhook },
    connection: { ...connection, webhook },
  }
  return { values }
}

function omit(values: Json | undefined, isOmitted: (key: string) => boolean): JsonObject {
  return isJsonObject(values) ? Object.fromEntries(Object.entries(values).filter(([key]) => !isOmitted(key))) : {}
}

function memberOf(values: Json | undefined, key: string): Json | undefined {
  return isJsonObject(values) && Object.hasOwn(values, key) ? values[key] : undefined
}
