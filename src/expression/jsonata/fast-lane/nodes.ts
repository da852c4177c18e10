import type { AstNode } from '../parse.ts'
import { bailOut } from './frame.ts'

/** Whether a part of the tree is a node. */
export function isNode(part: unknown): part is AstNode {
  return typeof part === 'object' && part !== null && 'type' in part && typeof part.type === 'string'
}

/** The part as a node; leaves when it is none. */
export function asNode(part: unknown): AstNode {
  return isNode(part) ? part : bailOut()
}

/** The part as a list of nodes; leaves when it is none. */
export function asNodes(part: unknown): readonly AstNode[] {
  return Array.isArray(part) && part.every(isNode) ? part : bailOut()
}

/**
 * Leaves when a node carries anything beyond the named properties.
 *
 * JSONata hangs predicates, groupings, sort orders, focus and index variables on nodes as extra properties. Naming what is
 * known, instead of what is not, keeps this lane correct when a version adds another.
 */
export function assertKeys(node: AstNode, properties: readonly string[]): void {
  for (const key of Object.keys(node)) {
    if (!properties.includes(key) && node[key] !== undefined) bailOut()
  }
}
