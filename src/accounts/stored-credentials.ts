import { type Clock, type JsonObject, parseJson, type Random } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import type { ConnectPlan } from '../definitions/index.ts'
import type { TokenSet } from '../formats/index.ts'
import type { SecretRef, SecretStore } from '../secrets/index.ts'
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

/** Refresh margin: a token is refreshed this long before it expires, or this share of its lifetime, the shorter of both. */
const MARGIN_MS_MAX = 5 * 60_000
const MARGIN_SHARE = 0.2
/** The background refreshes earlier than calls, by up to this share of the margin: jitter that spreads the refreshes. */
const EARLY_SHARE = 0.5

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

/** When the token expires and is due in the background. @param canRefresh whether the next one needs no customer */
export function tokenTimes(
  token: Pick<StoredToken, 'obtainedAt' | 'expiresAt'>,
  canRefresh: boolean,
  random: Random,
): TokenTimes {
  const { expiresAt } = token
  if (expiresAt === undefined) return { expiresAt: null, dueAt: null }
  const earlyMs = marginMs(token, expiresAt) * (1 + EARLY_SHARE * random())
  return { expiresAt, dueAt: canRefresh ? new Date(expiresAt.getTime() - earlyMs) : null }
}

function marginMs({ obtainedAt }: Pick<StoredToken, 'obtainedAt'>, expiresAt: Date): number {
  return Math.min(MARGIN_MS_MAX, MARGIN_SHARE * (expiresAt.getTime() - obtainedAt.getTime()))
}

/** Stores a token that was granted by the customer's consent; it replaces the account's token. `tx` is a transaction. */
export async function storeGrantedToken(
  {
    secrets,
    clock,
    random,
  }: { readonly secrets: Pick<SecretStore, 'put'>; readonly clock: Clock; readonly random: Random },
  tx: Tx,
  account: Pick<IntegratedAccountRecord, 'id' | 'environmentId' | 'region'>,
  { token: rules }: Pick<ConnectPlan, 'token'>,
  token: TokenSet,
): Promise<void> {
  const obtainedAt = clock.now()
  const times = tokenTimes({ obtainedAt, expiresAt: token.expiresAt }, rules?.canRequestToken(token) === true, random)
  const version = await resetToken(tx, account, times)
  await secrets.put(tx, accountSecretRef(account), tokenSecret({ ...token, version, obtainedAt }))
}
