import {
  type BackoffPolicy,
  backoffMs,
  Failure,
  isJsonObject,
  type JsonObject,
  newId,
  parseJson,
} from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import { compilePlan } from '../definitions/index.ts'
import type { RevocationResult, TokenError } from '../formats/index.ts'
import { revokeAuthorization } from './authorization.ts'
import type { AccountDependencies } from './dependencies.ts'
import { type ResolvedAccount, resolveAccount, tokenRulesOf } from './resolved-account.ts'
import type { AccountWithDefinition } from './sql/integrated-account.ts'
import {
  claimTokenRevocation,
  deleteTokenRevocation,
  insertTokenRevocation,
  postponeTokenRevocation,
  type TokenRevocation,
} from './sql/token-revocation.ts'
import { accountSecretRef } from './stored-credentials.ts'

/** What an account was when it was deleted, as far as revoking its grant needs it. Holds plain credentials. */
interface DeletedAccount {
  readonly account: AccountWithDefinition
  /** The definition without what no request about a token reads. */
  readonly config: JsonObject
  readonly secrets: Readonly<Record<string, string>>
}

/** Parts of a definition, the largest, that no request about a token reads. */
const UNUSED_KEYS: readonly string[] = ['resources', 'actions', 'webhooks']

/**
 * Notes that the grant of an account is to be revoked, before the account is deleted in the same transaction: where it has a
 * token and its definition an address for it. What the request needs is kept encrypted until a worker has sent it, because
 * installation and environment may be deleted with the account.
 */
export async function scheduleRevocation(
  { secrets: store, definitions }: Pick<AccountDependencies, 'secrets' | 'definitions'>,
  tx: Tx,
  account: AccountWithDefinition,
): Promise<void> {
  try {
    const definition = await definitions.getVersion(tx, account)
    const secrets = await store.get(tx, accountSecretRef(account))
    if (!canRevoke(resolveAccount(account, definition, secrets))) return
    const kept = Object.entries(definition.config).filter(([key]) => !UNUSED_KEYS.includes(key))
    const text = JSON.stringify({ account, config: Object.fromEntries(kept), secrets })
    const id = newId()
    const sealed = await store.encryptFor(tx, id, aadOf(id), Buffer.from(text))
    await insertTokenRevocation(tx, { id, region: account.region, sealed })
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

function aadOf(id: string): string {
  return `token_revocation.sealed|${id}`
}

/** A grant that was not revoked. */
export interface RevocationFailure {
  /** Of the deleted account; `undefined` when it cannot be read. */
  readonly integratedAccountId: string | undefined
  readonly cause: TokenError['kind']
  /** For people; secrets are redacted. */
  readonly message: string
}

/** What revoking grants takes. */
type TokenRevokerOptions = Pick<
  AccountDependencies,
  'database' | 'secrets' | 'http' | 'evaluator' | 'clock' | 'random'
> & {
  /** Only accounts of these regions. Absent: all. */
  readonly regions?: readonly string[] | undefined
  /** Called when a grant was not revoked: all attempts failed, or the third party rejects the request. */
  readonly onFailure: (failure: RevocationFailure) => void
}

interface RevocationAttempt {
  readonly accountId: string | undefined
  readonly result: RevocationResult | undefined
}

/** Longer than the requests of a revocation may take. */
const LEASE_MS = 60_000
/** With the back-off about a day. */
const ATTEMPTS_MAX = 8
const RETRY_BACKOFF: BackoffPolicy = { baseMs: 60_000, factor: 4, maxMs: 6 * 3_600_000, jitterFloor: 0.5 }

/**
 * Revokes the grants of deleted accounts at the third party (RFC 7009). Any number of workers share the work. A grant is
 * revoked at least once: repeating a revocation changes nothing.
 */
export class TokenRevoker {
  readonly #deps: TokenRevokerOptions

  constructor(deps: TokenRevokerOptions) {
    this.#deps = deps
  }

  /** Makes one attempt. @returns whether there was something to revoke */
  async runOnce(): Promise<boolean> {
    const { database, regions } = this.#deps
    const revocation = await claimTokenRevocation(database.pool, { leaseMs: LEASE_MS, regions })
    if (revocation !== undefined) await this.#revoke(revocation)
    return revocation !== undefined
  }

  async #revoke(revocation: TokenRevocation): Promise<void> {
    const { database, random, onFailure } = this.#deps
    const { id, attempts } = revocation
    const { accountId: integratedAccountId, result } = await this.#attempt(revocation)
    if (result?.kind === 'transient' && attempts < ATTEMPTS_MAX) {
      const delayMs = Math.max((result.retryAfterSeconds ?? 0) * 1_000, backoffMs(RETRY_BACKOFF, attempts, random))
      return await postponeTokenRevocation(database.pool, id, delayMs)
    }
    await this.#delete(revocation)
    // A rejected grant is none any more.
    if (result?.kind === 'transient' || result?.kind === 'client_refused')
      onFailure({ integratedAccountId, cause: result.kind, message: result.message })
  }

  async #attempt(revocation: TokenRevocation): Promise<RevocationAttempt> {
    try {
      const resolved = await this.#read(revocation)
      return { accountId: resolved.account.id, result: await revokeAuthorization(this.#deps, resolved) }
    } catch (error) {
      if (!isUnusable(error)) throw error
      const { publicMessage: message } = error
      return { accountId: undefined, result: { kind: 'client_refused', message, retryAfterSeconds: undefined } }
    }
  }

  async #read({ id, sealed }: TokenRevocation): Promise<ResolvedAccount> {
    const { database, secrets: store } = this.#deps
    const text = Buffer.from(await store.decryptFor(database.pool, id, aadOf(id), sealed)).toString('utf8')
    const { account, config, secrets } = parseJson(text) as unknown as DeletedAccount
    const variables = config.environment_variables
    const definition = {
      plan: compilePlan(config),
      config,
      environmentVariables: isJsonObject(variables) ? variables : {},
      connection: {},
    }
    return resolveAccount(account, definition, secrets)
  }

  /** With its key, so that no backup can read the token. */
  async #delete({ id }: TokenRevocation): Promise<void> {
    const { database, secrets } = this.#deps
    await database.transaction(async (tx) => {
      await deleteTokenRevocation(tx, id)
      await secrets.destroyKeys(tx, id)
    })
  }
}
