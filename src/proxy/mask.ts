import { isJsonObject, type Json } from '../base/index.ts'
import { type Plan, secretTexts } from '../definition/index.ts'
import { SECRET_MASK } from '../vault/index.ts'
import type { AccountAccess } from './request.ts'

/** Replaces every secret in a text, however the text spells it. */
export type Mask = (text: string) => string

/** Fields of a token answer that say what kind of token it is, and for how long. */
const PUBLIC_TOKEN_FIELDS: ReadonlySet<string> = new Set(['token_type', 'scope', 'expires_in', 'expires_at'])

/** Shorter secrets also occur by chance: they are masked only where they stand alone. */
const LENGTH_MIN = 4

/**
 * A mask for everything that could be a secret in a request of this account: every credential, and what the definition
 * and the environment's variables keep encrypted.
 */
export function createMask(plan: Plan, { credentials, environmentVariables }: AccountAccess): Mask {
  const variables = secretTexts({ environment_variables: environmentVariables })
  const secrets = [...credentialTexts(credentials), ...plan.secrets, ...variables]
  const spellings = new Set(secrets.flatMap(spellingsOf).filter((text) => text !== ''))
  if (spellings.size === 0) return (text) => text
  // The longest first: one secret may be a part of another.
  const patterns = [...spellings].sort((one, other) => other.length - one.length).map(patternOf)
  // In any case of letters: hosts and percent-encoded bytes change theirs.
  const pattern = new RegExp(patterns.join('|'), 'giu')
  return (text) => text.replaceAll(pattern, SECRET_MASK)
}

/** Every text and number below, but for what a token answer says about its token. A text that is JSON counts with its leaves. */
function credentialTexts(value: Json, name = ''): string[] {
  if (PUBLIC_TOKEN_FIELDS.has(name)) return []
  if (Array.isArray(value)) return value.flatMap((item: Json) => credentialTexts(item))
  if (isJsonObject(value)) return Object.entries(value).flatMap(([key, item]) => credentialTexts(item, key))
  if (typeof value === 'number') return [String(value)]
  return typeof value === 'string' ? [value, ...jsonLeaves(value)] : []
}

function jsonLeaves(text: string): string[] {
  if (!/^\s*[[{]/.test(text)) return []
  try {
    return credentialTexts(JSON.parse(text) as Json)
  } catch {
    return []
  }
}

/**
 * How a value may be written in a request: as it is, in JSON (also inside of a JSON text) or XML, and each of them
 * percent-encoded in URLs and forms. Slashes at the end are no part of it: addresses lose them.
 */
function spellingsOf(value: string): string[] {
  const secret = value.replace(/\/+$/, '')
  const json = JSON.stringify(secret).slice(1, -1)
  const xml = secret.replace(/[&<>"']/g, (character) => XML_ENTITIES[character] ?? character)
  const written = [secret, json, JSON.stringify(json).slice(1, -1), xml]
  return [...written, ...written.filter((text) => text.isWellFormed()).flatMap(percentEncodings)]
}

const XML_ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}

/** Of a path or query, and of a form, where blanks may be plus signs; encoders differ in `!'()*`. */
function percentEncodings(text: string): string[] {
  const encoded = encodeURIComponent(text)
  const strict = encoded.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16)}`)
  return [encoded, strict, strict.replaceAll('%20', '+')]
}

function patternOf(text: string): string {
  const literal = RegExp.escape(text)
  return text.length < LENGTH_MIN ? `(?<![\\p{L}\\p{N}])${literal}(?![\\p{L}\\p{N}])` : literal
}
