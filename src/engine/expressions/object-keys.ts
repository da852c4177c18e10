import { type AstNode, isNode, parseAst } from './parse.ts'

/** A member of an object that an expression writes out: `{"a": {"b": 1}}` writes `a`, and `a`, `b` with the value 1. */
export interface WrittenMember {
  /** Literal keys, outermost first. */
  readonly path: readonly string[]
  /** The value where it is a literal. */
  readonly literal: string | number | undefined
}

/**
 * The members with literal keys of the objects that an expression writes, in conditions, calls and variables too; none when it
 * does not parse.
 */
export function listWrittenMembers(text: string): readonly WrittenMember[] {
  const parsed = parseAst(text)
  const found: WrittenMember[] = []
  if ('tree' in parsed) collectMembers(parsed.tree, [], found, new Set())
  return found
}

/** JSONata's trees share nodes: each is visited once per path. */
function collectMembers(part: unknown, path: readonly string[], found: WrittenMember[], seen: Set<object>): void {
  if (typeof part !== 'object' || part === null || seen.has(part)) return
  seen.add(part)
  const pairs = pairsOf(part)
  for (const [key, value] of pairs) {
    if (key.type !== 'string' || typeof key.value !== 'string') continue
    const inner = [...path, key.value]
    found.push({ path: inner, literal: literalOf(value) })
    collectMembers(value, inner, found, new Set())
  }
  if (pairs.length > 0) return
  for (const inner of Object.values(part)) collectMembers(inner, path, found, seen)
}

/** The keys and values of an object that a node writes: `{…}`, or `list{…}`, whose node is in `group`. */
function pairsOf(part: object): readonly (readonly [AstNode, unknown])[] {
  if (!('lhs' in part) || !Array.isArray(part.lhs)) return []
  return part.lhs.flatMap((pair: unknown) =>
    Array.isArray(pair) && isNode(pair[0]) ? [[pair[0], pair[1]] as const] : [],
  )
}

function literalOf(value: unknown): string | number | undefined {
  if (!isNode(value) || (value.type !== 'string' && value.type !== 'number')) return undefined
  return typeof value.value === 'string' || typeof value.value === 'number' ? value.value : undefined
}
