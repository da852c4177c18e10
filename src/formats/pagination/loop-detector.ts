import { hash } from 'node:crypto'
import { canonicalJson, type DotPath, getAtPath, type Json, type JsonObject, stringifyJson } from '../../base/index.ts'

/**
 * What a listing remembers to notice that it makes no progress; plain JSON of bounded size, part of the resume state.
 *
 * The positions of the last pages are kept as short hashes: a cycle among them is noticed as soon as it closes. Longer
 * cycles are caught by Brent's method: one anchored position, moved after 1, 2, 4, 8 … pages. Of a page that leads to where
 * it was asked for, position and records count together: some APIs page with a constant token.
 */
export type LoopDetectorState = {
  readonly recent: readonly string[]
  readonly anchor: string
  /** Pages since the anchor was set, and after how many it moves. */
  readonly steps: number
  readonly span: number
  /** Of the page before, as hashes: the request, the records (empty after an empty page) and their identifiers. */
  readonly asked: string
  readonly content: string
  readonly ids: string
}

/**
 * How a page compares with the one before.
 *
 * `none`: it is another. `same_answer`: the same request was answered in the same way. `changed`: the same request was
 * answered with the same identifiers and other contents. `ignored`: another request was answered with the same records.
 */
export type Repetition = 'none' | 'same_answer' | 'changed' | 'ignored'

/** Positions kept as they are. Larger cycles cost Brent's method at most three times their length. */
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

/** Notes a page and compares it with the one before. @param asked what it was asked for with */
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
 * Notes where the page noted last leads. `isRepeated` when the listing has been there before.
 *
 * @param constantTimeEqual it leads to where it was asked for
 */
export function recordPosition(
  memory: LoopDetectorState,
  next: JsonObject,
  isSame: boolean,
): { readonly memory: LoopDetectorState; readonly isRepeated: boolean } {
  // Two empty answers in a row are the same answer; one between others says nothing.
  if (isSame && memory.content === '') return { memory, isRepeated: false }
  const token = fingerprint(`${isSame ? memory.content : ''} ${canonicalJson(next)}`)
  const isRepeated = memory.anchor === token || memory.recent.includes(token)
  const recent = [...memory.recent.slice(1 - RECENT_MAX), token]
  const steps = memory.steps + 1
  const moved = steps === memory.span ? { anchor: token, steps: 0, span: memory.span * 2 } : { steps }
  return { memory: { ...memory, recent, ...moved }, isRepeated }
}

/** A hash of the identifiers of the records; empty where one has none. */
function identifiersOf(records: readonly Json[], idPath: DotPath): string {
  const ids = records.map((record) => getAtPath(record, idPath) ?? null)
  return ids.length === 0 || ids.includes(null) ? '' : fingerprint(JSON.stringify(ids))
}

/** 60 bits: a false alarm within a million pages has odds of one in 10¹⁰. */
function fingerprint(text: string | Buffer): string {
  return hash('sha1', text, 'base64').slice(0, 10)
}
