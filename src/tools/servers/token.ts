import { createHash } from 'node:crypto'
import { checkedRandomText, isCheckedRandomText } from '../../platform/tenancy/index.ts'
import type { StoredToolToken } from './sql/tool-server.ts'

const PREFIX = 'pbm_'
const HINT_LENGTH = 4

/** A new token of a tool server: `pbm_` and a random text with checksum, and what is stored of it. */
export function mintToolToken(): StoredToolToken & { readonly token: string } {
  const token = PREFIX + checkedRandomText()
  return { token, tokenHash: sha256(token), tokenHint: token.slice(-HINT_LENGTH) }
}

/** The hash of a text that may be the token of a tool server; `undefined` for any other, API tokens among them. */
export function hashToolToken(text: string): Uint8Array | undefined {
  return text.startsWith(PREFIX) && isCheckedRandomText(text.slice(PREFIX.length)) ? sha256(text) : undefined
}

/** Suffices because a token is random, not a password. */
function sha256(text: string): Uint8Array {
  return createHash('sha256').update(text).digest()
}
