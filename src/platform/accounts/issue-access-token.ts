import { renderUrl } from '../../engine/expressions/index.ts'
import { isSecretField } from '../../engine/formats/index.ts'
import { Failure } from '../../foundation/base/index.ts'
import { appendAccountEvent } from './account-events.ts'
import type { AccountDependencies } from './dependencies.ts'
import { loadAccountForCall } from './load-account.ts'
import { connectPlanOf, type ResolvedAccount } from './resolved-account.ts'
import { isUsable, type StoredToken } from './stored-credentials.ts'

/** A token or key of an account, for a client that calls the third party itself. Never logged, never stored again. */
export interface IssuedAccessToken {
  readonly token: string
  /** As the third party calls it; `api_key` of a key that the customer entered. */
  readonly tokenType: string
  /** Undefined when it is not known. */
  readonly expiresAt: Date | undefined
  /** What the third party granted; empty when it does not say. */
  readonly scopes: readonly string[]
  /** Empty when the definition has none. */
  readonly baseUrl: string
}

type IssueDependencies = Pick<
  AccountDependencies,
  'database' | 'reader' | 'secrets' | 'definitions' | 'contextValues' | 'tokens' | 'clock'
>

/** The share of a token's whole lifetime that can be asked for at most: a shorter token is not refreshed by each call. */
const LIFETIME_SHARE = 0.8
const TOKEN_TYPE_DEFAULT = 'Bearer'
/** How private keys and certificates begin as texts (RFC 7468). */
const PEM = '-----BEGIN'

/**
 * Issues the token or key with which requests of the account are authorized; a token that ends sooner than asked is refreshed first, by
 * one refresh for all who ask at the same time. While the third party grants no new one, the present one is issued as long as it is
 * valid. The event of it is committed before.
 *
 * @throws Failure METHOD_NOT_DEFINED where no such token exists, SANDBOX_ACCOUNT_READ_ONLY, and those of `loadAccountForCall`
 */
export async function issueAccessToken(
  deps: IssueDependencies,
  environmentId: string,
  id: string,
  minLifetimeMs: number,
): Promise<IssuedAccessToken> {
  const loaded = await loadAccountForCall(deps, environmentId, id, 'call')
  assertIssuable(loaded)
  const issued = describe(await withLifetime(deps, loaded, minLifetimeMs))
  await deps.database.transaction((tx) => appendAccountEvent(tx, { environmentId, id }, 'token_issued'))
  return issued
}

/** A client that has the token can write, and one that signs needs a private key. */
function assertIssuable({ plan, account }: ResolvedAccount): void {
  if (account.isSandbox)
    throw new Failure(
      'SANDBOX_ACCOUNT_READ_ONLY',
      'sandbox accounts only read, and a client with its token could write',
    )
  if (!plan.sendsSecret)
    throw noToken('requests of this definition are signed, or carry no secret as it is: call through the proxy')
}

async function withLifetime(
  { tokens, clock }: IssueDependencies,
  loaded: ResolvedAccount,
  minLifetimeMs: number,
): Promise<ResolvedAccount> {
  const { token } = loaded
  if (token === undefined || !endsWithin(token, minLifetimeMs, clock.now())) return loaded
  try {
    return (await tokens.refresh(loaded, false)) ?? loaded
  } catch (error) {
    const isUnavailable = error instanceof Failure && error.reason === 'TOKEN_REQUEST_FAILED'
    if (isUnavailable && isUsable(token, clock.now())) return loaded
    throw error
  }
}

function endsWithin({ obtainedAt, expiresAt }: StoredToken, minLifetimeMs: number, now: Date): boolean {
  if (expiresAt === undefined) return false
  const wholeMs = expiresAt.getTime() - obtainedAt.getTime()
  return expiresAt.getTime() - now.getTime() < Math.min(minLifetimeMs, LIFETIME_SHARE * wholeMs)
}

function describe(resolved: ResolvedAccount): IssuedAccessToken {
  const { token, plan, access } = resolved
  const { url } = plan.passthrough
  const baseUrl = url === undefined ? '' : renderUrl(url, { account: access, call: {} })
  if (token === undefined)
    return { token: keyOf(resolved), tokenType: 'api_key', expiresAt: undefined, scopes: [], baseUrl }
  const { token_type: tokenType, scope } = token.fields
  return {
    token: token.accessToken,
    tokenType: typeof tokenType === 'string' && tokenType !== '' ? tokenType : TOKEN_TYPE_DEFAULT,
    expiresAt: token.expiresAt,
    scopes: typeof scope === 'string' ? scope.split(/[\s,]+/).filter((name) => name !== '') : [],
    baseUrl,
  }
}

/** The key of an account whose fields are all it has. @throws Failure METHOD_NOT_DEFINED unless exactly one of them is a secret */
function keyOf(resolved: ResolvedAccount): string {
  const plan = connectPlanOf(resolved)
  if (plan?.token !== undefined) throw noToken('the account has no token yet')
  const names = (plan?.fields ?? []).filter(isSecretField).map(({ name }) => name)
  const held = names.flatMap((name) => {
    const value = resolved.access.credentials[name]
    return typeof value === 'string' && value !== '' ? [value] : []
  })
  const [key] = held
  if (key === undefined) throw noToken('the account has no secret')
  if (key.startsWith(PEM)) throw noToken('the secret of the account is a private key')
  if (held.length > 1) throw noToken(`the account has ${held.length} secrets, and not one key: call through the proxy`)
  return key
}

function noToken(why: string): Failure {
  return new Failure('METHOD_NOT_DEFINED', `there is no token to issue: ${why}`)
}
