import { parseTime } from '../../../foundation/base/index.ts'
import { retryAfterSeconds } from '../../../foundation/egress/index.ts'
import {
  type DotPath,
  getAtPath,
  isJsonObject,
  type Json,
  type JsonObject,
  parseDotPath,
  parseJson,
  toDouble,
} from '../../../foundation/json/index.ts'
import type { TokenError, TokenResponse, TokenResult, TokenSet } from './credential.ts'
import type { Field } from './fields.ts'
import { type ClientOwner, type TokenVerdict, tokenVerdict } from './token-verdict.ts'

const CODE_PATHS = ['error', 'error.code', 'error.type', 'oauth_problem'].map(parseDotPath)
const MESSAGE_PATHS = [
  'error_description',
  'error.message',
  'error.description',
  'message',
  'error_message',
  'error_msg',
  'errorMessage',
  'errmsg',
  'msg',
  'detail',
  'errors[0].message',
  'errors[0].detail',
].map(parseDotPath)
const MESSAGE_LENGTH_MAX = 300
const RETRY_AFTER_SECONDS_MAX = 3_600

/** Parses the body independently of its content type: JSON, a form, else a text. */
export function parseLooseBody(response: TokenResponse): TokenResponse {
  return typeof response.body === 'string' ? { ...response, body: parseText(response.body.trim()) } : response
}

/** True for an error response: another status than 2xx, or a success that names an error. */
export function isTokenError({ status, body }: TokenResponse): boolean {
  return status < 200 || status > 299 || errorCodeOf(body) !== undefined
}

/** Classifies a response without a token. @param response as `parseLooseBody` returns it */
export function tokenErrorFrom(response: TokenResponse, clientOwner: ClientOwner, now: Date): TokenError {
  return {
    kind: rejectedKind(response, clientOwner) ?? verdictOf(response, clientOwner),
    message: messageOf(response),
    retryAfterSeconds: retryAfterOf(response, now),
  }
}

/** The verdict on a success response that is an error all the same: in the words of the definition, or by a text in its body. */
function rejectedKind(response: TokenResponse, clientOwner: ClientOwner): TokenVerdict | undefined {
  const { status, body, rejection } = response
  if (status >= 400) return undefined
  if (rejection?.isTransient) return 'transient'
  if (rejection !== undefined) return clientOwner === 'account' ? 'grant_refused' : 'client_refused'
  const isSaid = errorCodeOf(body) === undefined && isJsonObject(body) && saidIn(body) !== undefined
  return isSaid && status < 300 && clientOwner === 'account' ? 'grant_refused' : undefined
}

function verdictOf({ status, body }: TokenResponse, clientOwner: ClientOwner): TokenVerdict {
  return tokenVerdict({ status, body, code: errorCodeOf(body), text: saidIn(body), clientOwner })
}

function saidIn(body: Json): string | undefined {
  return MESSAGE_PATHS.map((path) => getAtPath(body, path)).find(isText)
}

function messageOf({ status, body, rejection }: TokenResponse): string {
  if (status < 400 && rejection !== undefined) return rejection.message.slice(0, MESSAGE_LENGTH_MAX)
  const code = errorCodeOf(body)
  const said = saidIn(body)
  const parts = [code, said === code ? undefined : said].filter((part) => part !== undefined)
  if (parts.length > 0) return parts.join(': ').slice(0, MESSAGE_LENGTH_MAX)
  return status < 300 && status >= 200
    ? 'the answer holds no access token where the definition looks for one'
    : `the answer was ${status}`
}

/** The error code of a response, where its server puts one. */
export function errorCodeOf(body: Json): string | undefined {
  return CODE_PATHS.map((path) => getAtPath(body, path)).find(isText)
}

function retryAfterOf({ headers }: TokenResponse, now: Date): number | undefined {
  const seconds = retryAfterSeconds(headers, now)
  return seconds === undefined ? undefined : Math.min(seconds, RETRY_AFTER_SECONDS_MAX)
}

/** Longest body that is parsed as a form; a token has some kilobytes. */
const FORM_LENGTH_MAX = 64 * 1024

function parseText(text: string): Json {
  if (/^[[{]/.test(text)) {
    try {
      return parseJson(text)
    } catch {
      return text
    }
  }
  const isForm = text.length <= FORM_LENGTH_MAX && /^[^\s<>=&]+=[^\s<>]*$/.test(text)
  return isForm ? formFields(text) : text
}

function formFields(text: string): JsonObject {
  return Object.fromEntries(new URLSearchParams(text))
}

function isText(value: Json | undefined): value is string {
  return typeof value === 'string' && value !== ''
}

/** Paths in a token response. */
export interface TokenPaths {
  readonly accessToken: DotPath
  readonly refreshToken: DotPath
  readonly expiresIn: DotPath
  /** Milliseconds per unit of a lifetime. */
  readonly expiresInUnitMs: number
}

/** The names of RFC 6749 §5.1, or others. */
export function tokenPaths(
  named: {
    readonly [name in 'access_token' | 'refresh_token' | 'expires_in']?: string | undefined
  } & { readonly expires_in_unit?: 'seconds' | 'milliseconds' | undefined } = {},
): TokenPaths {
  return {
    accessToken: parseDotPath(named.access_token ?? 'access_token'),
    refreshToken: parseDotPath(named.refresh_token ?? 'refresh_token'),
    expiresIn: parseDotPath(named.expires_in ?? 'expires_in'),
    expiresInUnitMs: named.expires_in_unit === 'milliseconds' ? 1 : 1_000,
  }
}

/** Reads a token response with the names of RFC 6749 §5.1. */
export function readStandardTokenResponse(response: TokenResponse, rules: TokenResponseRules): TokenResult {
  return readTokenResponse(response, tokenPaths(), rules)
}

/** Context of a token response. */
export interface TokenResponseRules {
  readonly clientOwner: ClientOwner
  readonly now: Date
  readonly previous: TokenSet | undefined
  readonly lifetimeSeconds?: number | undefined
}

/** Reads a token response. @param rules `lifetimeSeconds` of a token whose response names none */
export function readTokenResponse(response: TokenResponse, paths: TokenPaths, rules: TokenResponseRules): TokenResult {
  const read = parseLooseBody(response)
  const accessToken = tokenText(getAtPath(read.body, paths.accessToken))
  if (isTokenError(read) || accessToken === undefined) return tokenErrorFrom(read, rules.clientOwner, rules.now)
  const { now, previous, lifetimeSeconds } = rules
  const found = {
    accessToken,
    refreshToken: tokenText(getAtPath(read.body, paths.refreshToken)),
    expiresAt:
      parseExpiry(getAtPath(read.body, paths.expiresIn), now, paths.expiresInUnitMs) ??
      parseExpiry(lifetimeSeconds, now),
  }
  return grantedToken(found, read.body, previous)
}

/**
 * Merges a token over the previous one: a refresh token that was not issued again is kept, and so are fields that only the
 * first response had.
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

/** A text that is not empty, as every token is. */
export function tokenText(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Larger numbers are not lifetimes but epochs, in seconds or milliseconds. */
const EPOCH_SECONDS_MIN = 1e9
const EPOCH_MS_MIN = 1e12
const LIFETIME_MS_MAX = 10 * 365 * 24 * 3_600_000

/**
 * Expiry of a token: seconds from now as number or text, an epoch, or a date. A unit other than seconds counts for lifetimes.
 *
 * `undefined` for anything else, and for a lifetime of zero or less: servers send it for tokens that do not expire.
 */
export function parseExpiry(value: Json | undefined, now: Date, unitMs = 1_000): Date | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : toDouble(value)
  if (typeof number === 'number' && !Number.isNaN(number)) return boundExpiry(expiryMs(number, now, unitMs), now)
  return typeof value === 'string' ? boundExpiry(parseTime(value), now) : undefined
}

function expiryMs(number: number, now: Date, unitMs: number): number {
  if (number >= EPOCH_MS_MIN) return number
  const isEpochSeconds = unitMs === 1_000 && number >= EPOCH_SECONDS_MIN
  return isEpochSeconds ? number * 1_000 : now.getTime() + number * unitMs
}

function boundExpiry(momentMs: number, now: Date): Date | undefined {
  const lifetimeMs = momentMs - now.getTime()
  return lifetimeMs > 0 ? new Date(now.getTime() + Math.min(lifetimeMs, LIFETIME_MS_MAX)) : undefined
}

/** Fields with which an existing token is imported, beside the fields of the definition. */
export const IMPORTED_FIELDS: readonly Field[] = [
  { name: 'access_token', label: 'Access token', type: 'password', required: true },
  { name: 'refresh_token', label: 'Refresh token', type: 'password', required: false },
  { name: 'expires_in', label: 'Lifetime in seconds', type: 'text', required: false, format: 'number' },
  { name: 'token_secret', label: 'Secret of an OAuth 1.0a token', type: 'password', required: false },
]

/** The token of collected values. One with a lifetime of zero or less has expired and is refreshed before its first use. */
export function importedToken(values: JsonObject, now: Date): TokenSet {
  const accessToken = tokenText(values.access_token)
  if (accessToken === undefined) throw new Error('collected values hold no access token')
  const found = {
    accessToken,
    refreshToken: tokenText(values.refresh_token),
    expiresAt: isExpired(values.expires_in) ? now : parseExpiry(values.expires_in, now),
  }
  const tokenSecret = tokenText(values.token_secret)
  return grantedToken(found, tokenSecret === undefined ? {} : { token_secret: tokenSecret }, undefined).token
}

function isExpired(seconds: Json | undefined): boolean {
  return seconds !== undefined && Number(seconds) <= 0
}
