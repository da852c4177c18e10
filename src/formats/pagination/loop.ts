import { hash } from 'node:crypto'
import { canonicalJson, type Json, type JsonObject } from '../../base/index.ts'

/**
 * What a listing remembers to notice that it makes no progress; plain JSON of bounded size, part of the resume state.
 *
 * The positions of the last pages are kept as short hashes: a cycle among them is noticed as soon as it closes. Longer
 * cycles are caught by Brent's method: one anchored position, moved after 1, 2, 4, 8 … pages.
 */
export interface LoopMemory {
  readonly recent: readonly string[]
  readonly anchor: string
  /** Pages since the anchor was set, and after how many it moves. */
  readonly steps: number
  readonly span: number
  /** Hash of the records of the page before; empty after an empty page. */
  readonly content: string
}

/** Positions kept as they are. Larger cycles cost Brent's method at most three times their length. */
const RECENT_MAX = 48

export const EMPTY_LOOP_MEMORY: LoopMemory = { recent: [], anchor: '', steps: 0, span: 1, content: '' }

/** Notes a position. `isRepeated` when the listing has been there before. */
export function rememberPosition(
  memory: LoopMemory,
  position: JsonObject,
): { memory: LoopMemory; isRepeated: boolean } {
  const token = fingerprint(canonicalJson(position))
  const isRepeated = memory.anchor === token || memory.recent.includes(token)
  const recent = [...memory.recent.slice(1 - RECENT_MAX), token]
  const steps = memory.steps + 1
  const moved = steps === memory.span ? { anchor: token, steps: 0, span: memory.span * 2 } : { steps }
  return { memory: { ...memory, recent, ...moved }, isRepeated }
}

/** Notes the records of a page. `isRepeated` when the page before held exactly the same, and any at all. */
export function rememberContent(
  memory: LoopMemory,
  records: readonly Json[],
): { memory: LoopMemory; isRepeated: boolean } {
  const content = records.length === 0 ? '' : fingerprint(JSON.stringify(records))
  return { memory: { ...memory, content }, isRepeated: content !== '' && content === memory.content }
}

/** 60 bits: a false alarm within a million pages has odds of one in 10¹⁰. */
function fingerprint(text: string): string {
  return hash('sha1', text, 'base64').slice(0, 10)
}
