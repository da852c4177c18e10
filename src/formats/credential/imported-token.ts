import type { Json, JsonObject } from '../../base/index.ts'
import type { Field } from './field.ts'
import type { TokenSet } from './token.ts'
import { grantedToken, tokenText } from './token-grant.ts'
import { parseExpiry } from './token-lifetime.ts'

/** What hands in a token that was granted elsewhere, beside the fields of the definition. */
export const IMPORTED_FIELDS: readonly Field[] = [
  { name: 'access_token', label: 'Access token', type: 'password', required: true },
  { name: 'refresh_token', label: 'Refresh token', type: 'password', required: false },
  { name: 'expires_in', label: 'Lifetime in seconds', type: 'text', required: false, format: 'number' },
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
  return grantedToken(found, {}, undefined).token
}

function isExpired(seconds: Json | undefined): boolean {
  return seconds !== undefined && Number(seconds) <= 0
}
