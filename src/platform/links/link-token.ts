import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { checkedRandomText, isCheckedRandomText } from '../tenancy/token-format.ts'

const LINK_TOKEN = /^lnk_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})_([0-9A-Za-z]+)$/

/** A link token and what is stored of it. */
export interface LinkTokenText {
  readonly token: string
  readonly hash: Uint8Array
}

/** The link token of a session: `lnk_`, the session's id without dashes, `_`, a random text with checksum. */
export function mintLinkToken(sessionId: string): LinkTokenText {
  const token = `lnk_${sessionId.replaceAll('-', '')}_${checkedRandomText()}`
  return { token, hash: hashSecret(token) }
}

/** The session that a token names, and the hash to compare; `undefined` for a text that cannot be a link token. */
export function parseLinkToken(token: string): { readonly id: string; readonly hash: Uint8Array } | undefined {
  const parts = LINK_TOKEN.exec(token)?.slice(1)
  const secret = parts?.pop()
  if (parts === undefined || secret === undefined || !isCheckedRandomText(secret)) return undefined
  return { id: parts.join('-'), hash: hashSecret(token) }
}

const SECRET_BYTES = 32

/** 256 random bits in 43 characters of base64url: keys of browsers, states, tickets. */
export function randomSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url')
}

/** SHA-256, which suffices because what is hashed is random. */
export function hashSecret(text: string): Uint8Array {
  return createHash('sha256').update(text).digest()
}

/** Whether a text has the hash, in constant time. */
export function hasHash(text: string, hash: Uint8Array | null): boolean {
  return hash !== null && timingSafeEqual(hashSecret(text), hash)
}
