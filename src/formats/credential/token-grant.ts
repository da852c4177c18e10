import { type DotPath, getAtPath, isJsonObject, type Json, type JsonObject, parseDotPath } from '../../base/index.ts'
import type { TokenAnswer, TokenResponse, TokenSet } from './token.ts'
import { parseExpiry } from './token-lifetime.ts'
import { type ClientOwner, isRefusal, readLoosely, refusalOf } from './token-response.ts'

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
export function tokenAnswerOf(response: TokenResponse, rules: AnswerRules): TokenAnswer {
  return answerOf(response, tokenPaths(), rules)
}

/** What else an answer is read by. */
export interface AnswerRules {
  readonly clientOwner: ClientOwner
  readonly now: Date
  readonly previous: TokenSet | undefined
  readonly lifetimeSeconds?: number | undefined
}

/** What an answer to a standard token request came to. @param lifetimeSeconds of a token whose answer names none */
export function answerOf(response: TokenResponse, paths: TokenPaths, rules: AnswerRules): TokenAnswer {
  const read = readLoosely(response)
  const accessToken = textOf(getAtPath(read.body, paths.accessToken))
  if (isRefusal(read) || accessToken === undefined) return refusalOf(read, rules.clientOwner)
  const { now, previous, lifetimeSeconds } = rules
  const found = {
    accessToken,
    refreshToken: textOf(getAtPath(read.body, paths.refreshToken)),
    expiresAt: parseExpiry(getAtPath(read.body, paths.expiresIn), now) ?? parseExpiry(lifetimeSeconds, now),
  }
  return granted(found, read.body, previous)
}

/**
 * A token over the one before it: a refresh token that was not given again is kept, and so are fields that only the first
 * answer holds.
 */
export function granted(
  found: Omit<TokenSet, 'fields'>,
  body: Json,
  previous: TokenSet | undefined,
): Extract<TokenAnswer, { kind: 'granted' }> {
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
export function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
