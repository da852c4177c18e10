import { type BackoffPolicy, backoffMs, type JsonObject } from '../../base/index.ts'
import type { MethodPlan } from '../../definition/index.ts'
import type { TokenRefusal, TokenRules, TokenSet } from '../../formats/index.ts'
import {
  type Database,
  isDatabaseUnavailable,
  type Secrets,
  settleToken,
  settleTokenRefusal,
  type TokenLease,
  type Tx,
  updateIntegratedAccount,
} from '../../storage/index.ts'
import { changeAccountStatus } from '../change-status.ts'
import { type ReadyAccount, withToken } from '../ready-account.ts'
import { accountSecrets } from '../secret-ref.ts'
import { ASK_MS_MAX, type AskDeps, askForToken } from './ask-for-token.ts'
import { type StoredToken, timesOf, writeToken } from './stored-token.ts'
import { contextFromToken } from './token-context.ts'
import { failureOf, pauseMsAfter, writeRefusal } from './token-failure.ts'

/** What obtaining tokens needs. */
export interface ObtainDeps extends AskDeps {
  readonly database: Pick<Database, 'direct' | 'transaction'>
  readonly secrets: Pick<Secrets, 'put'>
  /** A number in [0, 1). */
  readonly random: () => number
}

/** A token that was paid for with a refresh token must not be lost to a hiccup of the database. */
const STORE_ATTEMPTS_MAX = 5
const STORE_RETRY: BackoffPolicy = { baseMs: 250, factor: 2, maxMs: 2_000, jitterFloor: 0.5 }

/** The lease outlives the requests and the attempts to store what they bring. */
export const LEASE_MS = ASK_MS_MAX + 15_000

/**
 * Obtains the next token under a lease that the caller has taken. The token is durable before anybody uses it; nothing is
 * held in the database while the third party is asked.
 *
 * @returns the account with its new token; `undefined` when the lease was taken over meanwhile, so that nothing was stored
 * @throws Failure CREDENTIALS_INVALID when the grant is refused (an active account is `needs_reauth` from then on),
 * TOKEN_REQUEST_FAILED
 */
export async function obtainToken(
  deps: ObtainDeps,
  ready: ReadyAccount,
  rules: TokenRules<MethodPlan>,
  lease: TokenLease,
): Promise<ReadyAccount | undefined> {
  const answer = await askForToken(deps, rules, ready)
  if (answer.kind !== 'granted') return await refuse(deps, ready, lease, answer)
  return await durably(deps, () =>
    deps.database.transaction((tx) => store(deps, tx, ready, { rules, lease, token: answer.token })),
  )
}

async function store(
  { secrets, clock, random }: ObtainDeps,
  tx: Tx,
  ready: ReadyAccount,
  granted: { readonly rules: TokenRules<MethodPlan>; readonly lease: TokenLease; readonly token: TokenSet },
): Promise<ReadyAccount | undefined> {
  const { rules, lease, token } = granted
  const { account } = ready
  const obtainedAt = clock.now()
  const times = timesOf({ obtainedAt, expiresAt: token.expiresAt }, rules.canObtain(token), random)
  const version = await settleToken(tx, lease, times)
  if (version === undefined) return undefined
  const stored: StoredToken = { ...token, version, obtainedAt }
  await secrets.put(tx, accountSecrets(account), writeToken(stored))
  const filled = contextFromToken(rules, token, account.context, ready.access.credentials)
  if (Object.keys(filled).length > 0) await fillContext(tx, ready, filled)
  return withToken({ ...ready, account: { ...account, context: { ...account.context, ...filled } } }, stored)
}

async function fillContext(tx: Tx, { account }: ReadyAccount, contextKeys: JsonObject): Promise<void> {
  const patch = { tenantId: undefined, contextKeys, removedContextKeys: [], version: undefined }
  await updateIntegratedAccount(tx, account.environmentId, account.id, patch)
}

/** Keeps the refusal, for those who ask during the pause, and throws it. Of a lease that was taken over nothing is kept. */
async function refuse(
  { database, random }: ObtainDeps,
  { account }: ReadyAccount,
  lease: TokenLease,
  refusal: TokenRefusal,
): Promise<undefined> {
  const pauseMs = pauseMsAfter(refusal, lease.failures + 1, random)
  const failure = failureOf(refusal, account.id, pauseMs)
  const isOurs = await database.transaction(async (tx) => {
    const isFinal = refusal.kind === 'grant_refused'
    if (!(await settleTokenRefusal(tx, lease, { refusal: writeRefusal(refusal), pauseMs, isFinal }))) return false
    if (isFinal) await changeAccountStatus(tx, account, 'refresh_failed', failure.publicMessage)
    return true
  })
  if (isOurs) throw failure
  return undefined
}

async function durably<Result>({ clock, random }: ObtainDeps, work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === STORE_ATTEMPTS_MAX || !isDatabaseUnavailable(error)) throw error
      await clock.sleep(backoffMs(STORE_RETRY, attempt, random))
    }
  }
}
