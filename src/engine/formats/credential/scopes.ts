import { type DotPath, getAtPath, type Json } from '../../../foundation/json/index.ts'
import type { TokenSet } from './credential.ts'

/** Scopes of a consent: what was granted, and what was requested beyond it. */
export interface ScopeComparison {
  readonly granted: readonly string[]
  readonly missing: readonly string[]
}

/**
 * Compares granted scopes with requested ones. A customer may untick scopes, and the token still works.
 *
 * A response without scopes granted those that were requested (RFC 6749 §5.1). `offline_access` is granted with a refresh
 * token, whether the response names it or not.
 *
 * @param path where the token response holds the scopes
 */
export function compareScopes(
  { fields, refreshToken }: TokenSet,
  path: DotPath,
  requested: readonly string[],
): ScopeComparison {
  const named = readScopes(getAtPath(fields, path))
  if (named.length === 0) return { granted: requested, missing: [] }
  const implied = refreshToken === undefined ? [] : OFFLINE_SCOPES
  const isGranted = (scope: string) => implied.includes(scope) || named.some((other) => isSameScope(scope, other))
  return { granted: named, missing: requested.filter((scope) => !isGranted(scope)) }
}

const OFFLINE_SCOPES: readonly string[] = ['offline_access', 'offline']

/** Most scopes of a response that are read. */
const SCOPES_MAX = 1_000

/** Servers answer with another separator than the request had; no scope contains a comma or a blank. */
function readScopes(value: Json | undefined): readonly string[] {
  const texts = Array.isArray(value) ? value : [value]
  const scopes = texts.flatMap((text: Json | undefined) => (typeof text === 'string' ? text.split(/[\s,]+/) : []))
  return [...new Set(scopes.filter((scope) => scope !== ''))].slice(0, SCOPES_MAX)
}

/** Servers of well-known APIs name `User.Read` as `https://graph.example.com/User.Read`, and the other way round. */
function isSameScope(requested: string, granted: string): boolean {
  const [one, other] = [requested.toLowerCase(), granted.toLowerCase()]
  return one === other || one.endsWith(`/${other}`) || other.endsWith(`/${one}`)
}
