import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

/** What an API token may do; part of its text, so that a leaked one can be recognised. */
export type ApiTokenKind = 'team' | 'environment'

const PREFIX: Readonly<Record<ApiTokenKind, string>> = { team: 'pbt', environment: 'pbe' }
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 62^32 is more than 2^190. */
const RANDOM_LENGTH = 32
const CHECKSUM_LENGTH = 6
const HINT_LENGTH = 4
const SHAPE = /^pb[te]_[0-9A-Za-z]{38}$/
const CHECKED_TEXT = /^[0-9A-Za-z]{38}$/
/** A token chosen by the operator: long enough to be unguessable when it is random, and safe in a header. */
const CHOSEN_SHAPE = /^[\x21-\x7e]{32,256}$/

/** A token as it is shown once, what is stored of it, and what may be shown later. */
export interface MintedToken {
  readonly token: string
  readonly hash: Uint8Array
  /** The last characters. */
  readonly hint: string
}

/** Creates a token: prefix and checked random text. */
export function mintToken(kind: ApiTokenKind): MintedToken {
  return toMintedToken(`${PREFIX[kind]}_${checkedRandomText()}`)
}

/** 32 random characters and 6 of checksum, so that a typo is rejected without a look-up. */
export function checkedRandomText(): string {
  const random = randomText(RANDOM_LENGTH)
  return random + checksum(random)
}

/** Whether `checkedRandomText` may have made the text. */
export function isCheckedRandomText(text: string): boolean {
  return CHECKED_TEXT.test(text) && text.endsWith(checksum(text.slice(0, RANDOM_LENGTH)))
}

/**
 * Reads a token that the operator chose; `undefined` unless it is 32 to 256 visible ASCII characters. A text with the form
 * of a minted token needs the right checksum: authentication would reject it otherwise.
 */
export function chosenToken(token: string): MintedToken | undefined {
  return hashToken(token) === undefined ? undefined : toMintedToken(token)
}

/**
 * What is stored for a presented token, or `undefined` when it cannot be one: the wrong shape, or one of ours with a
 * wrong checksum. SHA-256 suffices because a token is random, not a password.
 */
export function hashToken(token: string): Buffer | undefined {
  if (SHAPE.test(token)) return isCheckedRandomText(token.slice(4)) ? sha256(token) : undefined
  return CHOSEN_SHAPE.test(token) ? sha256(token) : undefined
}

function toMintedToken(token: string): MintedToken {
  return { token, hash: sha256(token), hint: token.slice(-HINT_LENGTH) }
}

function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

function checksum(text: string): string {
  return base62(crc32(text)).padStart(CHECKSUM_LENGTH, '0')
}

function base62(value: number): string {
  const head = Math.floor(value / 62)
  return (head === 0 ? '' : base62(head)) + ALPHABET.charAt(value % 62)
}

/** Bytes of 248 and more are dropped: 248 = 4 · 62, so that every character is equally likely. */
function randomText(length: number): string {
  let text = ''
  while (text.length < length)
    for (const byte of randomBytes(length)) if (byte < 248 && text.length < length) text += ALPHABET.charAt(byte % 62)
  return text
}
