import type { ConnectPlan, Plan } from '../../engine/definitions/index.ts'
import type { Lifetimes, TokenSet } from '../../engine/formats/index.ts'
import { type Clock, DAY_MS, type Random } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import { type Json, type JsonObject, parseJson } from '../../foundation/json/index.ts'
import type { SecretRef, SecretStore } from '../../foundation/secrets/index.ts'
import { type ReauthorizationTimes, storeReauthorization } from './sql/account-state.ts'
import { resetToken, type TokenTimes } from './sql/account-token.ts'
import type { IntegratedAccountRecord } from './sql/integrated-account.ts'

/** The secret of an account's credentials: JSON texts by field name, encrypted with the key of its environment. */
export function accountSecretRef({
  id,
  environmentId,
}: Pick<IntegratedAccountRecord, 'id' | 'environmentId'>): SecretRef {
  return { ownerId: environmentId, subjectType: 'integrated_account', subjectId: id }
}

/** A token as stored among the secrets of its account: never shown, never logged. */
export interface StoredToken extends TokenSet {
  /** The version that `account_token` had when it was stored. */
  readonly version: number
  readonly obtainedAt: Date
}

/** The secret's name. No field of a definition has it: field names contain no dot. */
export const TOKEN_SECRET = 'oauth.token'

/** The name of the secret that holds what is known about the account's subscription, a `SubscriptionState`. */
export const SUBSCRIPTION_SECRET = 'subscription.state'

/** What placeholders read of an account's subscriptions at the third party. Stored among the secrets of its account. */
export interface SubscriptionState {
  /** `{{subscription.secret}}`. */
  readonly secret?: Json
  /** What the third party calls them, by event; of one for all events by an empty text. */
  readonly ids: JsonObject
}

/** Whether a secret is a collected field; others have names with a dot. */
export function isFieldName(name: string): boolean {
  return !name.includes('.')
}

/** Prefix of the names of secrets that webhooks of the third party brought, such as the secret of a subscription. */
const WEBHOOK_SECRET_PREFIX = 'webhook.'

/** The name of the secret behind `{{connection.webhook.<key>}}`. */
export function webhookSecretName(key: string): string {
  return `${WEBHOOK_SECRET_PREFIX}${key}`
}

/** The key of a secret that a webhook brought; `undefined` for the name of any other. */
export function webhookSecretKey(name: string): string | undefined {
  return name.startsWith(WEBHOOK_SECRET_PREFIX) ? name.slice(WEBHOOK_SECRET_PREFIX.length) : undefined
}

/** Refresh margin: a token is refreshed this long before it expires, or this share of its lifetime, the shorter of both. */
const MARGIN_MS_MAX = 5 * 60_000
const MARGIN_SHARE = 0.2
/** The background refreshes earlier than calls, by up to this share of the margin: jitter that spreads the refreshes. */
const EARLY_SHARE = 0.5
/** Keep-alive: an idle refresh token is used after this share of the time that it may be idle, or a little earlier. */
const KEEP_ALIVE_SHARE = 0.75
const KEEP_ALIVE_JITTER = 0.1
/** The customer is asked to connect again so long before the end, or this share of the whole time, the shorter of both. */
const WARNING_MS_MAX = 14 * DAY_MS
const WARNING_SHARE = 0.2

/** The secret that holds the token, by name. */
export function tokenSecret({ version, obtainedAt, expiresAt, fields }: StoredToken): Readonly<Record<string, string>> {
  const value = { version, obtained_at: obtainedAt.toISOString(), expires_at: expiresAt?.toISOString() ?? null, fields }
  return { [TOKEN_SECRET]: JSON.stringify(value) }
}

/** Reads what `tokenSecret` wrote. */
export function parseStoredToken(text: string): StoredToken {
  const { version, obtained_at, expires_at, fields } = parseJson(text) as unknown as StoredTokenJson
  return {
    version,
    obtainedAt: new Date(obtained_at),
    expiresAt: expires_at === null ? undefined : new Date(expires_at),
    accessToken: String(fields.access_token),
    refreshToken: typeof fields.refresh_token === 'string' ? fields.refresh_token : undefined,
    fields,
  }
}

interface StoredTokenJson {
  readonly version: number
  readonly obtained_at: string
  readonly expires_at: string | null
  readonly fields: JsonObject
}

/** Whether the refresh margin of the token has not begun. */
export function isFresh(token: StoredToken, now: Date): boolean {
  return token.expiresAt === undefined || now.getTime() < token.expiresAt.getTime() - marginMs(token, token.expiresAt)
}

/** Whether the token has not expired. */
export function isUsable({ expiresAt }: StoredToken, now: Date): boolean {
  return expiresAt === undefined || now < expiresAt
}

/** Lifetimes of an account's tokens, and whether they can be refreshed. */
export interface TokenPolicy {
  /** Whether the next token needs no customer. */
  readonly canRefresh: boolean
  readonly lifetimes: Lifetimes | undefined
}

/** @param plan the definition, whose action `refresh_token` can refresh any token */
export function tokenPolicyOf(
  { actions }: Pick<Plan, 'actions'>,
  { token: rules, lifetimes }: Pick<ConnectPlan, 'token' | 'lifetimes'>,
  token: TokenSet,
): TokenPolicy {
  return { canRefresh: actions.has('refresh_token') || rules?.canRequestToken(token) === true, lifetimes }
}

/**
 * When the token expires and is due in the background: before it expires, and before its refresh token has been idle for so
 * long that the third party forgets it (keep-alive), whichever comes first.
 */
export function tokenTimes(
  token: Pick<StoredToken, 'obtainedAt' | 'expiresAt'>,
  { canRefresh, lifetimes }: TokenPolicy,
  random: Random,
): TokenTimes {
  const { obtainedAt, expiresAt } = token
  const idleDays = lifetimes?.refreshTokenIdleDays
  const expiryDueMs =
    expiresAt === undefined ? Infinity : expiresAt.getTime() - marginMs(token, expiresAt) * (1 + EARLY_SHARE * random())
  const idleShare = KEEP_ALIVE_SHARE - KEEP_ALIVE_JITTER * random()
  const idleDueMs = idleDays === undefined ? Infinity : obtainedAt.getTime() + idleDays * DAY_MS * idleShare
  const dueMs = Math.min(expiryDueMs, idleDueMs)
  return { expiresAt: expiresAt ?? null, dueAt: canRefresh && dueMs < Infinity ? new Date(dueMs) : null }
}

/**
 * When the customer has to connect an account again, and when that is announced: the end of the grant, or of a token that
 * cannot be refreshed. Null: never, as far as is known.
 */
function reauthorizationTimes(
  { obtainedAt, expiresAt }: Pick<StoredToken, 'obtainedAt' | 'expiresAt'>,
  { canRefresh, lifetimes }: TokenPolicy,
): ReauthorizationTimes {
  const maxDays = lifetimes?.refreshTokenMaxDays
  const grantEndsAt = maxDays === undefined ? undefined : new Date(obtainedAt.getTime() + maxDays * DAY_MS)
  const dueAt = canRefresh ? grantEndsAt : expiresAt
  if (dueAt === undefined) return { dueAt: null, warningAt: null }
  const lifetimeMs = dueAt.getTime() - obtainedAt.getTime()
  const earlyMs = Math.min(WARNING_MS_MAX, WARNING_SHARE * lifetimeMs)
  return { dueAt, warningAt: new Date(dueAt.getTime() - earlyMs) }
}

function marginMs({ obtainedAt }: Pick<StoredToken, 'obtainedAt'>, expiresAt: Date): number {
  return Math.min(MARGIN_MS_MAX, MARGIN_SHARE * (expiresAt.getTime() - obtainedAt.getTime()))
}

/** Stores a token that was granted by the customer's consent; it replaces the account's token. */
export async function storeGrantedToken(
  {
    secrets,
    clock,
    random,
  }: { readonly secrets: Pick<SecretStore, 'put'>; readonly clock: Clock; readonly random: Random },
  tx: Tx,
  account: Pick<IntegratedAccountRecord, 'id' | 'environmentId' | 'region'>,
  policy: TokenPolicy,
  token: TokenSet,
): Promise<void> {
  const obtained = { obtainedAt: clock.now(), expiresAt: token.expiresAt }
  const version = await resetToken(tx, account, tokenTimes(obtained, policy, random))
  await secrets.put(tx, accountSecretRef(account), tokenSecret({ ...token, ...obtained, version }))
  await storeReauthorization(tx, account, reauthorizationTimes(obtained, policy))
}
