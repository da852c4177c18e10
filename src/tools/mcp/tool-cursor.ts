import { createHash } from 'node:crypto'
import type { Sealer } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { ToolDescription } from '../servers/tool.ts'

const PURPOSE = 'tool_list'

/** A list of tools, and who reads it. */
export interface ToolListing {
  readonly tools: readonly ToolDescription[]
  readonly sealer: Sealer
  /** Who may use the cursors. */
  readonly holder: JsonObject
}

/** The cursor of the page that begins at an index: opaque to clients, and valid for this list and holder alone. */
export function encodeToolCursor({ sealer, holder, tools }: ToolListing, index: number): string {
  return sealer.seal(PURPOSE, [holder, hashNames(tools)], String(index))
}

/** The index in a cursor; `undefined` for one of another list or holder, or a text that is none. */
export function decodeToolCursor({ sealer, holder, tools }: ToolListing, cursor: string): number | undefined {
  const content = sealer.open(PURPOSE, [holder, hashNames(tools)], cursor)
  return content === undefined ? undefined : Number(content)
}

const hashes = new WeakMap<readonly ToolDescription[], string>()

/** Computed once per list, which never changes. */
function hashNames(tools: readonly ToolDescription[]): string {
  const known = hashes.get(tools)
  if (known !== undefined) return known
  const hash = createHash('sha256')
  for (const { name } of tools) hash.update(`${name}\n`)
  const text = hash.digest('base64url')
  hashes.set(tools, text)
  return text
}
