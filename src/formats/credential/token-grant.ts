import { type DotPath, getAtPath, isJsonObject, type Json, type JsonObject, parseDotPath } from '../../base/index.ts'
import type { TokenResponse, TokenResult, TokenSet } from './token.ts'
import { parseExpiry } from './token-lifetime.ts'
import { type ClientOwner, isTokenError, parseLooseBody, tokenErrorFrom } from './token-response.ts'

/** Where an answer holds what. */
export interface TokenPaths {
  readonly accessToken: DotPath
  readonly refreshToken: DotPath
  readonly expiresIn: DotPath
}

/** The names of RFC 6749 §5.1, or others. */
export function tokenPaths(
  named: { readonly [name in 'access_token' | 'refresh_token' | 'expires_in']?: string | undefined } = {},
): TokenPaths {
  return {
    accessToken: parseDotPath(named.access_token ?? 'access_token'),
    refreshToken: parseDotPath(named.refresh_token ?? 'refresh_token'),
    expiresIn: parseDotPath(named.expires_in ?? 'expires_in'),
  }
}

/** What an answer that has the names of RFC 6749 §5.1 came to, wherever it comes from. */
export function readStandardTokenResponse(response: TokenResponse, rules: TokenResponseRules): TokenResult {
  return readTokenResponse(response, tokenPaths(), rules)
}

/** What else an answer is read by. */
export interface TokenResponseRules {
  readonly clientOwner: ClientOwner
  readonly now: Date
  readonly previous: TokenSet | undefined
  readonly lifetimeSeconds?: number | undefined
}

/** What an answer to a standard token request came to. @param lifetimeSeconds of a token whose answer names none */
export function readTokenResponse(response: TokenResponse, paths: TokenPaths, rules: TokenResponseRules): TokenResult {
  const read = parseLooseBody(response)
  const accessToken = tokenText(getAtPath(read.body, paths.accessToken))
  if (isTokenError(read) || accessToken === undefined) return tokenErrorFrom(read, rules.clientOwner)
  const { now, previous, lifetimeSeconds } = rules
  const found = {
    accessToken,
    refreshToken: tokenText(getAtPath(read.body, paths.refreshToken)),
    expiresAt: parseExpiry(getAtPath(read.body, paths.expiresIn), now) ?? parseExpiry(lifetimeSeconds, now),
  }
  return grantedToken(found, read.body, previous)
}

/**
 * A token over the one before it: a refresh token that was not given again is kept, and so are fields that only the first
 * answer holds.
 */
export function grantedToken(
  found: Omit<TokenSet, 'fields'>,
  body: Json,
  previous: TokenSet | undefined,
): Extract<TokenResult, { kind: 'granted' }> {
  const { accessToken, expiresAt } = found
  const refreshToken = found.refreshToken ?? previous?.refreshToken
  const fields: JsonObject = {
    ...previous?.fields,
    ...(isJsonObject(body) ? body : {}),
    access_token: accessToken,
    ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }),
  }
  return { kind: 'granted', token: { accessToken, refreshToken, expiresAt, fields } }
}

/** A value that can be a token; an empty one cannot. */
export function tokenText(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
