import type { Violation } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import { SECRET_MASK } from '../../foundation/redaction/index.ts'
import type { SecretRef, SecretStore } from '../../foundation/secrets/index.ts'

/** Custom headers by name. */
export type CustomHeaders = Readonly<Record<string, string>>

/** The secrets of a webhook that are custom headers have this before the name. */
const SECRET_PREFIX = 'header:'

/** Most custom headers of one webhook. */
const HEADERS_MAX = 20
/** Most characters of names and values together: receivers limit the size of all headers to 8 or 16 KiB. */
const HEADERS_LENGTH_MAX = 8 * 1024

/** Names that a delivery sets itself, or that belong to the connection. */
const RESERVED_NAMES: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'x-truto-signature',
])
const RESERVED_PREFIXES = ['webhook-', 'ce-', 'content-', 'proxy-'] as const

/** A violation for every header of the request that may not be set. */
export function checkHeaders(headers: CustomHeaders, field: string): Violation[] {
  const names = new Set<string>()
  const violations = Object.keys(headers).flatMap((name) => {
    const lower = name.toLowerCase()
    const isDouble = names.has(lower)
    names.add(lower)
    const problem = isReserved(lower)
      ? 'is set by every delivery or by the connection: choose another name'
      : isDouble
        ? 'is given twice: upper and lower case are the same'
        : undefined
    return problem === undefined ? [] : [{ field: `${field}.${name}`, description: problem, rule: 'headers.reserved' }]
  })
  const length = Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  if (length > HEADERS_LENGTH_MAX)
    violations.push({
      field,
      description: `must have at most ${HEADERS_LENGTH_MAX} characters together`,
      rule: 'headers.length',
    })
  return violations
}

function isReserved(name: string): boolean {
  return RESERVED_NAMES.has(name) || RESERVED_PREFIXES.some((prefix) => name.startsWith(prefix))
}

/**
 * Stores the given headers as secrets; others stay, an empty value removes a header, and the mask keeps its value. The caller
 * holds the lock on the webhook's row.
 *
 * @param stored the names that the webhook has, in lower case
 * @returns the names that it has now; or too many, or a mask without a value
 */
export async function writeHeaders(
  store: Pick<SecretStore, 'put' | 'remove'>,
  tx: Db,
  ref: SecretRef,
  stored: readonly string[],
  headers: CustomHeaders,
): Promise<{ readonly names: readonly string[] } | { readonly violations: readonly Violation[] }> {
  const given = Object.entries(headers).map(([name, value]) => ({ name, lower: name.toLowerCase(), value }))
  const violations: Violation[] = given
    .filter(({ lower, value }) => value === SECRET_MASK && !stored.includes(lower))
    .map(({ name }) => ({
      field: `headers.${name}`,
      description: `is the mask ${SECRET_MASK} of a value, and there is none to keep`,
      rule: 'headers.mask',
    }))
  const set = given.filter(({ value }) => value !== '' && value !== SECRET_MASK)
  const removed = given.filter(({ value }) => value === '').map(({ lower }) => lower)
  const names = [...new Set([...stored, ...set.map(({ lower }) => lower)])].filter((name) => !removed.includes(name))
  if (names.length > HEADERS_MAX)
    violations.push({ field: 'headers', description: `must be at most ${HEADERS_MAX}`, rule: 'map.max_pairs' })
  if (violations.length > 0) return { violations }
  await store.put(tx, ref, Object.fromEntries(set.map(({ lower, value }) => [SECRET_PREFIX + lower, value])))
  if (removed.length > 0)
    await store.remove(
      tx,
      ref,
      removed.map((name) => SECRET_PREFIX + name),
    )
  return { names: names.sort() }
}

/** A violation for every stored header that the request neither sets nor removes: its value belongs to the old address. */
export function checkHeadersOfNewOrigin(stored: readonly string[], headers: CustomHeaders): Violation[] {
  const given = new Set(
    Object.entries(headers).flatMap(([name, value]) => (value === SECRET_MASK ? [] : [name.toLowerCase()])),
  )
  return stored
    .filter((name) => !given.has(name))
    .map((name) => ({
      field: `headers.${name}`,
      description: 'was set for another host: give its value with the new target_url, or an empty one to remove it',
      rule: 'headers.other_origin',
    }))
}

/** The custom headers among the secrets of a webhook, by lower-case name. */
export function headersFromSecrets(values: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(values).flatMap(([name, value]) =>
    name.startsWith(SECRET_PREFIX) ? [[name.slice(SECRET_PREFIX.length), value] as const] : [],
  )
  return Object.fromEntries(entries)
}
