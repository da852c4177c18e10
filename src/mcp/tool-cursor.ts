import { createHash } from 'node:crypto'
import type { ToolDescription } from '../tool-servers/index.ts'

const HASH_BYTES = 9
const CURSOR = /^[\w-]{1,64}$/

/** The cursor of the page that begins at an index: opaque to clients, and valid for this list alone. */
export function encodeToolCursor(tools: readonly ToolDescription[], index: number): string {
  return Buffer.concat([hashNames(tools), Buffer.from(String(index))]).toString('base64url')
}

/** The index in a cursor; `undefined` for one of another list, or a text that is none. */
export function decodeToolCursor(tools: readonly ToolDescription[], cursor: string): number | undefined {
  if (!CURSOR.test(cursor)) return undefined
  const bytes = Buffer.from(cursor, 'base64url')
  const index = Number(bytes.subarray(HASH_BYTES).toString())
  const isOwn = bytes.subarray(0, HASH_BYTES).equals(hashNames(tools))
  return isOwn && Number.isInteger(index) && index > 0 && index < tools.length ? index : undefined
}

const hashes = new WeakMap<readonly ToolDescription[], Buffer>()

/** Computed once per list, which never changes. */
function hashNames(tools: readonly ToolDescription[]): Buffer {
  const known = hashes.get(tools)
  if (known !== undefined) return known
  const hash = createHash('sha256')
  for (const { name } of tools) hash.update(`${name}\n`)
  const bytes = hash.digest().subarray(0, HASH_BYTES)
  hashes.set(tools, bytes)
  return bytes
}
