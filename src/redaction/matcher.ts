import { type DecodedText, decodeLayers, type SecretPattern } from './encodings.ts'

/** A part of a text, from `start` to before `end`. */
interface TextSpan {
  readonly start: number
  readonly end: number
}

/** Finds many spellings in a text at once. */
export interface SecretMatcher {
  /** Where spellings stand, in order, without overlaps. */
  find(text: string): readonly TextSpan[]
  /** Characters by which a match may reach beyond where it is recognised. */
  readonly longest: number
}

/** Units of a spelling that are compared; a match covers all of them. */
const COMPARED_MAX = 64
/** States of the automaton; with more, every text is hidden whole. */
const STATES_MAX = 400_000

const MATCH_NOTHING: SecretMatcher = { find: () => [], longest: 0 }
const MATCH_EVERYTHING: SecretMatcher = {
  find: ({ length }) => (length === 0 ? [] : [{ start: 0, end: length }]),
  longest: 0,
}

/**
 * Indexes spellings in an Aho-Corasick automaton: finding them is linear in the text, however many there are.
 */
export function createSecretMatcher(spellings: readonly SecretPattern[]): SecretMatcher {
  if (spellings.length === 0) return MATCH_NOTHING
  const automaton = buildAutomaton(spellings)
  if (automaton === undefined) return MATCH_EVERYTHING
  return {
    find(text) {
      if (text.length < automaton.shortest) return []
      const hidden = new MaskedSpans(text)
      for (const view of decodeLayers(text)) scan(automaton, view, hidden)
      return hidden.spans()
    },
    longest: automaton.longest,
  }
}

/**
 * States are numbers, 0 is the root; each knows its first child and its next sibling. What ends in a state counts for all
 * suffixes of what it stands for.
 */
class Automaton {
  /** The children of the root by unit: most steps of a search look here. */
  readonly #begins = new Int32Array(256)
  readonly #children: Int32Array
  readonly #siblings: Int32Array
  readonly #units: Uint8Array
  readonly #fallbacks: Int32Array
  /** Units of the longest spelling that ends in a state, by how it must stand in the text; 0: none. */
  readonly lengths: Readonly<Record<SecretPattern['match'], Int32Array>>
  /** Units that a spelling which ends in a state has beyond those that were compared. */
  readonly beyond: Int32Array
  longest = 0
  shortest = Number.POSITIVE_INFINITY
  #size = 1

  constructor(statesMax: number) {
    this.#children = new Int32Array(statesMax)
    this.#siblings = new Int32Array(statesMax)
    this.#units = new Uint8Array(statesMax)
    this.#fallbacks = new Int32Array(statesMax)
    this.beyond = new Int32Array(statesMax)
    const perState = () => new Int32Array(statesMax)
    this.lengths = { part: perState(), alone: perState(), word: perState() }
  }

  add({ units, match }: SecretPattern): void {
    const compared = comparedOf(units)
    let state = 0
    for (let at = 0; at < compared; at++)
      state = this.#child(state, units[at] ?? 0) || this.#append(state, units[at] ?? 0)
    this.lengths[match][state] = compared
    this.beyond[state] = Math.max(this.beyond[state] ?? 0, units.length - compared)
    this.longest = Math.max(this.longest, compared)
    this.shortest = Math.min(this.shortest, compared)
  }

  /** Links every state to that of its longest suffix, level by level. Before any step, after the last spelling. */
  link(): void {
    let level = [0]
    while (level.length > 0) {
      const deeper: number[] = []
      for (const parent of level)
        for (let state = this.#children[parent] ?? 0; state !== 0; state = this.#siblings[state] ?? 0) {
          this.#fall(state, parent === 0 ? 0 : this.step(this.#fallbacks[parent] ?? 0, this.#units[state] ?? 0))
          deeper.push(state)
        }
      level = deeper
    }
  }

  /** The state after one more unit of a text. */
  step(from: number, unit: number): number {
    for (let state = from; state !== 0; state = this.#fallbacks[state] ?? 0) {
      const found = this.#child(state, unit)
      if (found !== 0) return found
    }
    return this.#begins[unit] ?? 0
  }

  #fall(state: number, fallback: number): void {
    this.#fallbacks[state] = fallback
    for (const lengths of [this.lengths.part, this.lengths.alone, this.lengths.word, this.beyond])
      lengths[state] = Math.max(lengths[state] ?? 0, lengths[fallback] ?? 0)
  }

  #child(state: number, unit: number): number {
    if (state === 0) return this.#begins[unit] ?? 0
    let child = this.#children[state] ?? 0
    while (child !== 0 && this.#units[child] !== unit) child = this.#siblings[child] ?? 0
    return child
  }

  #append(parent: number, unit: number): number {
    const state = this.#size++
    this.#units[state] = unit
    this.#siblings[state] = this.#children[parent] ?? 0
    this.#children[parent] = state
    if (parent === 0) this.#begins[unit] = state
    return state
  }
}

function buildAutomaton(spellings: readonly SecretPattern[]): Automaton | undefined {
  const states = 1 + spellings.reduce((sum, { units }) => sum + comparedOf(units), 0)
  if (states > STATES_MAX) return undefined
  const automaton = new Automaton(states)
  for (const spelling of spellings) automaton.add(spelling)
  automaton.link()
  return automaton
}

function comparedOf(units: Uint8Array): number {
  return Math.min(units.length, COMPARED_MAX)
}

function scan(automaton: Automaton, view: DecodedText, hidden: MaskedSpans): void {
  const { lengths, beyond } = automaton
  const { folded } = view
  let state = 0
  for (let at = 0; at < folded.length; at++) {
    state = automaton.step(state, folded[at] ?? 0)
    if (state === 0) continue
    const part = lengths.part[state] ?? 0
    const word = lengths.word[state] ?? 0
    const alone = lengths.alone[state] ?? 0
    const end = at + 1 + (beyond[state] ?? 0)
    if (part > 0) hidden.mask(view, at + 1 - part, end)
    if (word > 0) hidden.maskWord(view, at + 1 - word, end)
    if (alone > 0) maskAlone(view, at, alone, hidden)
  }
}

/** Of several short values that end here the longest is taken that stands alone. */
function maskAlone(view: DecodedText, at: number, longest: number, hidden: MaskedSpans): void {
  if (isWordUnit(view.codes[at + 1])) return
  const start = at + 1 - longest
  if (!isWordUnit(view.codes[start - 1])) hidden.mask(view, start, at + 1)
}

function isWordUnit(code: number | undefined): boolean {
  return code !== undefined && /[\p{L}\p{N}]/u.test(String.fromCharCode(code))
}

/** The parts of one text that are to be hidden. */
class MaskedSpans {
  readonly #length: number
  /** How many hidden spans begin, less those that end, at each place; made with the first of them. */
  #changes: Int32Array | undefined
  #wordView: DecodedText | undefined
  #wordEnd = 0

  constructor({ length }: string) {
    this.#length = length
  }

  mask(view: DecodedText, start: number, end: number): void {
    this.#changes ??= new Int32Array(this.#length + 1)
    const from = view.starts[Math.max(0, start)] ?? 0
    const to = view.ends[Math.min(end, view.ends.length) - 1] ?? this.#length
    this.#changes[from] = (this.#changes[from] ?? 0) + 1
    this.#changes[to] = (this.#changes[to] ?? 0) - 1
  }

  /** Hides the whole base64 text of which this is a part. */
  maskWord(view: DecodedText, start: number, end: number): void {
    if (this.#wordView === view && end <= this.#wordEnd) return
    const { codes } = view
    let first = start
    // Padding ends a text of base64, so that a name before `=` is none of it.
    while (first > 0 && codes[first - 1] !== PADDING && isBase64Unit(codes[first - 1])) first -= 1
    let last = end
    while (last < codes.length && isBase64Unit(codes[last])) last += 1
    this.#wordView = view
    this.#wordEnd = last
    this.mask(view, first, last)
  }

  spans(): readonly TextSpan[] {
    const changes = this.#changes
    if (changes === undefined) return []
    const spans: TextSpan[] = []
    let depth = 0
    let start = 0
    for (let at = 0; at <= this.#length; at++) {
      const before = depth
      depth += changes[at] ?? 0
      if (before === 0 && depth > 0) start = at
      if (before > 0 && depth === 0) spans.push({ start, end: at })
    }
    return spans
  }
}

const PADDING = '='.charCodeAt(0)

function isBase64Unit(code: number | undefined): boolean {
  return code !== undefined && code < 128 && /[\w+/=-]/.test(String.fromCharCode(code))
}
