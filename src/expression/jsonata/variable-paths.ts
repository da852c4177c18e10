import { isNode } from './fast-lane/nodes.ts'
import { type AstNode, parseAst } from './parse.ts'

/** A variable that an expression mentions, and the name that follows it: `$steps.login` is `steps` and `login`. */
export interface VariablePath {
  readonly variable: string
  readonly step: string | undefined
}

/**
 * The variables that an expression mentions, those that it binds itself and functions among them; none when it does not
 * parse.
 */
export function listVariablePaths(text: string): VariablePath[] {
  const parsed = parseAst(text)
  return 'tree' in parsed ? collectVariablePaths(parsed.tree, new Set()) : []
}

/** JSONata's trees share nodes: `a ?: b` mentions `a` twice. */
function collectVariablePaths(part: unknown, seen: Set<unknown>): VariablePath[] {
  if (typeof part !== 'object' || part === null || seen.has(part)) return []
  seen.add(part)
  return [...ownPath(part, seen), ...Object.values(part).flatMap((inner) => collectVariablePaths(inner, seen))]
}

function ownPath(part: object, seen: Set<unknown>): VariablePath[] {
  if (!isNode(part)) return []
  if (part.type === 'variable') return variableAt(part, undefined)
  const [first, second] = part.type === 'path' && Array.isArray(part.steps) ? part.steps : []
  if (!isNode(first) || first.type !== 'variable') return []
  seen.add(first)
  return variableAt(first, isNode(second) && second.type === 'name' ? second.value : undefined)
}

function variableAt({ value }: AstNode, step: unknown): VariablePath[] {
  return typeof value === 'string' ? [{ variable: value, step: typeof step === 'string' ? step : undefined }] : []
}
