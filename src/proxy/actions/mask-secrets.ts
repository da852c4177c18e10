import type { Json } from '../../base/index.ts'
import { SECRET_MASK } from '../../vault/index.ts'
import type { AccountAccess } from '../request.ts'

/** Shorter texts are words: masking them would make a message unreadable and hide nothing. */
const CREDENTIAL_LENGTH_MIN = 4
const VARIABLE_LENGTH_MIN = 8
/** Texts without blanks that are so long are taken for tokens, wherever they came from. */
const TOKEN = /^\S{16,}$/

/** Texts looked at in results. */
const LEAVES_MAX = 10_000

/**
 * A message without the account's credentials, the environment's variables and what looks like a token in the results of
 * earlier steps: an upstream may quote in its error what it was sent.
 */
export function maskSecrets(message: string, access: AccountAccess, results: Json): string {
  const secrets = [
    ...textsOf(access.credentials).filter((text) => text.length >= CREDENTIAL_LENGTH_MIN),
    ...textsOf(access.environmentVariables).filter((text) => text.length >= VARIABLE_LENGTH_MIN),
    ...textsOf(results).filter((text) => TOKEN.test(text)),
  ]
  // The longest first: one secret may be a part of another.
  const ordered = secrets.sort((one, other) => other.length - one.length)
  return ordered.reduce((text, secret) => text.replaceAll(secret, SECRET_MASK), message)
}

/** The texts in a value, the first ones of very many. */
function textsOf(value: Json): string[] {
  const open: Json[] = [value]
  const texts: string[] = []
  for (let next = open.pop(); next !== undefined && texts.length < LEAVES_MAX; next = open.pop()) {
    if (typeof next === 'string') texts.push(next)
    else if (typeof next === 'object' && next !== null) for (const inner of Object.values(next)) open.push(inner)
  }
  return texts
}
