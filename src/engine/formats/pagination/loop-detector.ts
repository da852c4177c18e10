import { hash } from 'node:crypto'
import {
  canonicalJson,
  type DotPath,
  getAtPath,
  type Json,
  type JsonObject,
  stringifyJson,
} from '../../../foundation/json/index.ts'

/**
 * State of the loop detector: plain JSON of bounded size, part of the listing's state.
 *
 * The positions of the last pages are kept as short hashes, which detect a cycle among them as soon as it closes. Longer
 * cycles are detected by Brent's algorithm: one anchored position, moved after 1, 2, 4, 8 … pages. Where a page leads to
 * its own position, position and records count together: some APIs page with a constant token.
 */
export type LoopDetectorState = {
  readonly recent: readonly string[]
  readonly anchor: string
  /** Pages since the anchor was set, and the number of pages after which it moves. */
  readonly steps: number
  readonly span: number
  /** Hashes of the previous page: its request, its records (empty for an empty page) and their identifiers. */
  readonly asked: string
  readonly content: string
  readonly ids: string
}

/**
 * How a page repeats the previous one.
 *
 * `none`: it does not. `same_answer`: same request, same records. `changed`: same request, same identifiers with other
 * contents. `ignored`: another request, same records, so that the upstream ignores the parameters.
 */
export type Repetition = 'none' | 'same_answer' | 'changed' | 'ignored'

/** Positions in the window of recent ones. Larger cycles take Brent's algorithm at most three times their length. */
const RECENT_MAX = 48

export const INITIAL_LOOP_STATE: LoopDetectorState = {
  recent: [],
  anchor: '',
  steps: 0,
  span: 1,
  asked: '',
  content: '',
  ids: '',
}

/** Records a page and compares it with the previous one. @param asked its request key */
export async function recordPage(
  memory: LoopDetectorState,
  asked: JsonObject,
  records: readonly Json[],
  idPath: DotPath,
): Promise<{ readonly memory: LoopDetectorState; readonly repetition: Repetition }> {
  const noted = {
    asked: fingerprint(canonicalJson(asked)),
    content: records.length === 0 ? '' : fingerprint(await stringifyJson(records)),
    ids: identifiersOf(records, idPath),
  }
  return { memory: { ...memory, ...noted }, repetition: compareWithPrevious(memory, noted) }
}

function compareWithPrevious(
  before: LoopDetectorState,
  page: Pick<LoopDetectorState, 'asked' | 'content' | 'ids'>,
): Repetition {
  if (before.asked === '') return 'none'
  const isSame = before.content === page.content
  if (before.asked !== page.asked) return isSame && page.content !== '' ? 'ignored' : 'none'
  if (isSame) return 'same_answer'
  return page.ids !== '' && before.ids === page.ids ? 'changed' : 'none'
}

/**
 * Records the next position. `isRepeated` when the listing has been there before.
 *
 * @param isSame the next position is the current one
 */
export function recordPosition(
  memory: LoopDetectorState,
  next: JsonObject,
  isSame: boolean,
): { readonly memory: LoopDetectorState; readonly isRepeated: boolean } {
  // Two consecutive empty pages are `same_answer`; a single one proves nothing.
  if (isSame && memory.content === '') return { memory, isRepeated: false }
  const token = fingerprint(`${isSame ? memory.content : ''} ${canonicalJson(next)}`)
  const isRepeated = memory.anchor === token || memory.recent.includes(token)
  const recent = [...memory.recent.slice(1 - RECENT_MAX), token]
  const steps = memory.steps + 1
  const moved = steps === memory.span ? { anchor: token, steps: 0, span: memory.span * 2 } : { steps }
  return { memory: { ...memory, recent, ...moved }, isRepeated }
}

/** Hash of the identifiers of the records; empty when one has none. */
function identifiersOf(records: readonly Json[], idPath: DotPath): string {
  const ids = records.map((record) => getAtPath(record, idPath) ?? null)
  return ids.length === 0 || ids.includes(null) ? '' : fingerprint(JSON.stringify(ids))
}

/** 60 bits: within a million pages the probability of a false positive is 10⁻¹⁰. */
function fingerprint(text: string | Buffer): string {
  return hash('sha1', text, 'base64').slice(0, 10)
}
