import { compilePlan } from '../../engine/definitions/index.ts'
import type { TokenError } from '../../engine/formats/index.ts'
import { type BackoffPolicy, backoffMs, Failure, newId } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import { isJsonObject, type JsonObject, parseJson } from '../../foundation/json/index.ts'
import { type DueResult, type DueWorkDeps, type Lease, runDue } from '../../foundation/queue/index.ts'
import type { SealedColumn } from '../../foundation/secrets/index.ts'
import { revokeAuthorization } from './authorization.ts'
import type { AccountDependencies, NamedSubscription } from './dependencies.ts'
import { requestToken } from './request-token.ts'
import { isMoved, type ResolvedAccount, resolveAccount, tokenRulesOf, withToken } from './resolved-account.ts'
import { isGrantShared } from './shared-grant.ts'
import { ACCOUNT_REMOVALS, type AccountRemoval, insertAccountRemoval, storeRenewed } from './sql/account-removal.ts'
import type { AccountWithDefinition } from './sql/integrated-account.ts'
import { accountSecretRef, isUsable, tokenSecret } from './stored-credentials.ts'

/** What an account was when it was deleted, as far as ending its subscriptions and its grant needs it. Holds plain credentials. */
interface DeletedAccount {
  readonly account: AccountWithDefinition
  /** The definition without what no such request reads. */
  readonly config: JsonObject
  readonly connection: JsonObject
  readonly secrets: Readonly<Record<string, string>>
  readonly subscriptions: readonly NamedSubscription[]
  /** Whether its grant is kept. Absent of what was deleted by earlier versions. */
  readonly keepsGrant?: boolean
}

/** The largest part of a definition, which no request about a token or a subscription reads. */
const UNUSED_KEYS: readonly string[] = ['resources']

/**
 * Notes what is to be ended at the third party, before the account is deleted in the same transaction: its subscriptions, and
 * its grant where it has a token and its definition an address for it. What the requests need is kept encrypted until a
 * worker has sent them, because installation and environment may be deleted with the account.
 *
 * @param keepsGrant the grant is not revoked
 */
export async function scheduleRemoval(
  {
    secrets: store,
    definitions,
    subscriptions,
  }: Pick<AccountDependencies, 'secrets' | 'definitions' | 'subscriptions'>,
  tx: Db,
  account: AccountWithDefinition,
  keepsGrant = false,
): Promise<void> {
  try {
    const definition = await definitions.getVersion(tx, account)
    if (isMoved(account, definition)) return
    const secrets = await store.get(tx, accountSecretRef(account))
    const subscribed = definition.plan.webhookSubscription === undefined ? [] : await subscriptions.list(tx, account)
    if (subscribed.length === 0 && (keepsGrant || !canRevoke(resolveAccount(account, definition, secrets)))) return
    const kept = Object.entries(definition.config).filter(([key]) => !UNUSED_KEYS.includes(key))
    const { connection } = definition
    const text = JSON.stringify({
      account,
      config: Object.fromEntries(kept),
      connection,
      secrets,
      subscriptions: subscribed,
      keepsGrant,
    } satisfies DeletedAccount)
    const id = newId()
    const sealed = await store.encryptFor(tx, id, aadOf(id), Buffer.from(text))
    await insertAccountRemoval(tx, { id, region: account.region, sealed })
  } catch (error) {
    if (!isUnusable(error)) throw error
  }
}

function canRevoke(resolved: ResolvedAccount): boolean {
  return resolved.token !== undefined && tokenRulesOf(resolved)?.revokeToken !== undefined
}

/** Whether the account could not be used any more, so that its deletion must not depend on it. */
function isUnusable(error: unknown): error is Failure {
  return error instanceof Failure && ['DEFINITION_INVALID', 'SECRET_UNREADABLE'].includes(error.reason)
}

/** What deleted accounts leave, for the rotation of data keys: each row owns a key. */
export const SEALED_REMOVALS: SealedColumn = {
  table: 'account_removal',
  column: 'sealed',
  owner: 'id',
  id: 'id',
  associatedData: aadOf,
}

function aadOf(id: string): string {
  return `account_removal.sealed|${id}`
}

/** A subscription that was not deleted, or a grant that was not revoked. */
export interface RemovalFailure {
  readonly of: 'subscription' | 'grant'
  /** Of the deleted account; `undefined` when it cannot be read. */
  readonly integratedAccountId: string | undefined
  readonly cause: TokenError['kind']
  /** For people; secrets are redacted. */
  readonly message: string
}

/** What ending subscriptions and grants takes. */
type AccountRemoverOptions = Pick<
  AccountDependencies,
  | 'database'
  | 'definitions'
  | 'secrets'
  | 'http'
  | 'evaluator'
  | 'proxyWithoutRefresh'
  | 'subscriptions'
  | 'clock'
  | 'random'
> &
  DueWorkDeps & {
    /** Called when one was not ended: all attempts failed, or the third party rejects the request. */
    readonly onFailure: (failure: RemovalFailure) => void
  }

/** Longer than the requests of an attempt may take: a token, up to 100 subscriptions, the revocation. */
const LEASE_MS = 300_000
/** For deleting subscriptions; what is left waits for the next attempt. */
const SUBSCRIPTIONS_TIMEOUT_MS = 120_000
/** With the back-off about a day. */
const ATTEMPTS_MAX = 8
const RETRY_BACKOFF: BackoffPolicy = { baseMs: 60_000, factor: 4, maxMs: 6 * 3_600_000, jitterFloor: 0.5 }

/** How an attempt ended. */
interface RemovalAttempt {
  /** Of the deleted account; `undefined` when it cannot be read. */
  readonly accountId: string | undefined
  /** Those that may succeed later. */
  readonly open: readonly RemainingFailure[]
  readonly rejected: readonly RemainingFailure[]
  readonly retryAfterMs: number
}

/**
 * Ends at the third party what deleted accounts leave there: deletes their subscriptions, then revokes their grants (RFC 7009),
 * which the deletion of subscriptions needs, unless another account uses them. Each is ended at least once: repeating it changes nothing.
 */
export class AccountRemover {
  readonly #deps: AccountRemoverOptions

  constructor(deps: AccountRemoverOptions) {
    this.#deps = deps
  }

  /** Makes one attempt. @returns whether there was something to end */
  async runOnce(): Promise<boolean> {
    return await runDue(this.#deps, {
      table: ACCOUNT_REMOVALS,
      leaseMs: LEASE_MS,
      work: (removal, requestedMs) => this.#remove(removal, requestedMs),
    })
  }

  async #remove(removal: Lease<AccountRemoval>, startedAtMs: number): Promise<DueResult> {
    const { secrets, random, onFailure } = this.#deps
    const { id, attempts } = removal
    const { accountId: integratedAccountId, open, rejected, retryAfterMs } = await this.#attempt(removal, startedAtMs)
    if (open.length > 0 && attempts < ATTEMPTS_MAX)
      return { delayMs: Math.max(retryAfterMs, backoffMs(RETRY_BACKOFF, attempts, random)) }
    for (const failure of [...open, ...rejected]) onFailure({ integratedAccountId, ...failure })
    // With its key: what a replica of the row still holds does not open here.
    return { isDone: true, record: (tx) => secrets.destroyKeys(tx, id) }
  }

  async #attempt(removal: Lease<AccountRemoval>, startedAtMs: number): Promise<RemovalAttempt> {
    try {
      const deleted = await this.#read(removal)
      const resolved = await this.#withUsableToken(removal, deleted, startedAtMs)
      const ended = await this.#endSubscriptions(resolved, deleted.subscriptions)
      const isLast = removal.attempts >= ATTEMPTS_MAX
      const revoked = ended.open.length > 0 && !isLast ? NOTHING_LEFT : await this.#revoke(resolved, deleted)
      return {
        accountId: resolved.account.id,
        open: [...ended.open, ...revoked.open],
        rejected: [...ended.rejected, ...revoked.rejected],
        retryAfterMs: revoked.retryAfterMs,
      }
    } catch (error) {
      if (!isUnusable(error)) throw error
      const rejected = [{ of: 'grant', cause: 'client_refused', message: error.publicMessage }] as const
      return { accountId: undefined, open: [], rejected, retryAfterMs: 0 }
    }
  }

  async #endSubscriptions(resolved: ResolvedAccount, subscriptions: readonly NamedSubscription[]): Promise<Remains> {
    const { clock } = this.#deps
    const open: RemainingFailure[] = []
    const rejected: RemainingFailure[] = []
    const deadlineMs = clock.monotonicMs() + SUBSCRIPTIONS_TIMEOUT_MS
    for (const subscription of subscriptions) {
      const error =
        clock.monotonicMs() < deadlineMs
          ? await this.#deps.subscriptions.end(resolved, subscription)
          : { isTransient: true, message: 'not tried yet' }
      if (error === undefined) continue
      const cause = error.isTransient ? 'transient' : 'client_refused'
      ;(error.isTransient ? open : rejected).push({ of: 'subscription', cause, message: error.message })
    }
    return { open, rejected, retryAfterMs: 0 }
  }

  async #revoke(resolved: ResolvedAccount, { config, keepsGrant = false }: DeletedAccount): Promise<Remains> {
    const { database, definitions } = this.#deps
    const { account, access } = resolved
    const definition = { config, environmentVariables: access.environmentVariables }
    if (keepsGrant || (await isGrantShared(definitions, database.pool, account, definition))) return NOTHING_LEFT
    const result = await revokeAuthorization(this.#deps, resolved)
    // A rejected grant is none any more.
    if (result === undefined || result.kind === 'revoked' || result.kind === 'grant_refused') return NOTHING_LEFT
    const cause = result.kind === 'client_refused' ? 'client_refused' : 'transient'
    const failures = [{ of: 'grant', cause, message: result.message } as const]
    return cause === 'transient'
      ? { open: failures, rejected: [], retryAfterMs: (result.retryAfterSeconds ?? 0) * 1_000 }
      : { open: [], rejected: failures, retryAfterMs: 0 }
  }

  async #read({ id, sealed }: AccountRemoval): Promise<DeletedAccount> {
    const { database, secrets: store } = this.#deps
    const text = Buffer.from(await store.decryptFor(database.pool, id, aadOf(id), sealed)).toString('utf8')
    return parseJson(text) as unknown as DeletedAccount
  }

  /** The account with a token that has not ended: deleting a subscription needs one. A new one is stored before it is used. */
  async #withUsableToken(
    removal: Lease<AccountRemoval>,
    deleted: DeletedAccount,
    startedAtMs: number,
  ): Promise<ResolvedAccount> {
    const { clock, database, secrets: store } = this.#deps
    const resolved = resolvedFrom(deleted)
    const { token } = resolved
    const rules = tokenRulesOf(resolved)
    if (deleted.subscriptions.length === 0 || token === undefined || isUsable(token, clock.now())) return resolved
    if (rules?.canRequestToken(token) !== true) return resolved
    const result = await requestToken(this.#deps, rules, resolved, startedAtMs)
    if (result.kind !== 'granted') return resolved
    const stored = { ...result.token, version: token.version + 1, obtainedAt: clock.now() }
    const renewed = { ...deleted, secrets: { ...deleted.secrets, ...tokenSecret(stored) } }
    const bytes = Buffer.from(JSON.stringify(renewed))
    const sealed = await store.encryptFor(database.pool, removal.id, aadOf(removal.id), bytes)
    await storeRenewed(database.pool, removal, sealed)
    return withToken(resolved, stored)
  }
}

type RemainingFailure = Omit<RemovalFailure, 'integratedAccountId'>
type Remains = Pick<RemovalAttempt, 'open' | 'rejected' | 'retryAfterMs'>

const NOTHING_LEFT: Remains = { open: [], rejected: [], retryAfterMs: 0 }

function resolvedFrom({ account, config, connection, secrets }: DeletedAccount): ResolvedAccount {
  const variables = config.environment_variables
  const environmentVariables = isJsonObject(variables) ? variables : {}
  // Of an account whose credentials were for other hosts nothing is noted.
  const reauthorizationVersion = account.enteredVersion
  const definition = { plan: compilePlan(config), config, environmentVariables, connection, reauthorizationVersion }
  return resolveAccount(account, definition, secrets)
}
