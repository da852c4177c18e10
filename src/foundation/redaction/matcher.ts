import { type DecodedText, decodeLayers, type SecretPattern } from './encodings.ts'

/** A part of a text: `end` is exclusive. */
interface TextSpan {
  readonly start: number
  readonly end: number
}

/** Multi-pattern string search. */
export interface SecretMatcher {
  /** The occurrences of all patterns, in order, without overlaps. */
  find(text: string): readonly TextSpan[]
  /** Length of the longest compared pattern: a match may begin that far before the end of a truncated text. */
  readonly longest: number
}

/** Units of a pattern that are compared; a match covers the whole pattern. */
const COMPARED_MAX = 64
/** Units of a pattern with which a text ends that are masked: it was cut in the middle of a secret. */
const CUT_MIN = 8
/** Size limit of the automaton; with more states every text is masked completely. */
const STATES_MAX = 400_000

const MATCH_NOTHING: SecretMatcher = { find: () => [], longest: 0 }
const MATCH_EVERYTHING: SecretMatcher = {
  find: ({ length }) => (length === 0 ? [] : [{ start: 0, end: length }]),
  longest: 0,
}

/**
 * Aho-Corasick automaton of all patterns: searching is linear in the text, however many there are.
 */
export function createSecretMatcher(patterns: readonly SecretPattern[]): SecretMatcher {
  if (patterns.length === 0) return MATCH_NOTHING
  const automaton = buildAutomaton(patterns)
  if (automaton === undefined) return MATCH_EVERYTHING
  return {
    find(text) {
      if (text.length < Math.min(automaton.shortest, CUT_MIN)) return []
      const masked = new MaskedSpans(text)
      for (const layer of decodeLayers(text)) scan(automaton, layer, masked)
      return masked.spans()
    },
    longest: automaton.longest,
  }
}

/**
 * Aho-Corasick automaton in typed arrays. States are numbers, 0 is the root; each has its first child, its next sibling and its
 * failure link. A pattern that ends in a state also ends in every state whose failure links lead to it.
 */
class Automaton {
  /** The children of the root by unit: most steps of a search read this table. */
  readonly #rootChildren = new Int32Array(256)
  readonly #children: Int32Array
  readonly #siblings: Int32Array
  readonly #units: Uint8Array
  readonly #failureLinks: Int32Array
  /** Length in units of the longest pattern that ends in a state, by its kind of match; 0: none. */
  readonly lengths: Readonly<Record<SecretPattern['match'], Int32Array>>
  /** Units that a pattern which ends in a state has beyond the compared ones. */
  readonly beyond: Int32Array
  /** Units from the root to a state: of some pattern the text so far ends with so many. */
  readonly depths: Uint8Array
  longest = 0
  shortest = Number.POSITIVE_INFINITY
  #size = 1

  constructor(statesMax: number) {
    this.#children = new Int32Array(statesMax)
    this.#siblings = new Int32Array(statesMax)
    this.#units = new Uint8Array(statesMax)
    this.#failureLinks = new Int32Array(statesMax)
    this.beyond = new Int32Array(statesMax)
    this.depths = new Uint8Array(statesMax)
    const perState = () => new Int32Array(statesMax)
    this.lengths = { anywhere: perState(), word: perState(), base64: perState() }
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

  /** Computes the failure links, level by level. Called after the last `add` and before the first `step`. */
  link(): void {
    let level = [0]
    while (level.length > 0) {
      const deeper: number[] = []
      for (const parent of level)
        for (let state = this.#children[parent] ?? 0; state !== 0; state = this.#siblings[state] ?? 0) {
          this.#setFailureLink(
            state,
            parent === 0 ? 0 : this.step(this.#failureLinks[parent] ?? 0, this.#units[state] ?? 0),
          )
          deeper.push(state)
        }
      level = deeper
    }
  }

  /** The state after the next unit of a text. */
  step(from: number, unit: number): number {
    for (let state = from; state !== 0; state = this.#failureLinks[state] ?? 0) {
      const found = this.#child(state, unit)
      if (found !== 0) return found
    }
    return this.#rootChildren[unit] ?? 0
  }

  #setFailureLink(state: number, target: number): void {
    this.#failureLinks[state] = target
    for (const lengths of [this.lengths.anywhere, this.lengths.word, this.lengths.base64, this.beyond])
      lengths[state] = Math.max(lengths[state] ?? 0, lengths[target] ?? 0)
  }

  #child(state: number, unit: number): number {
    if (state === 0) return this.#rootChildren[unit] ?? 0
    let child = this.#children[state] ?? 0
    while (child !== 0 && this.#units[child] !== unit) child = this.#siblings[child] ?? 0
    return child
  }

  #append(parent: number, unit: number): number {
    const state = this.#size++
    this.#units[state] = unit
    this.depths[state] = (this.depths[parent] ?? 0) + 1
    this.#siblings[state] = this.#children[parent] ?? 0
    this.#children[parent] = state
    if (parent === 0) this.#rootChildren[unit] = state
    return state
  }
}

function buildAutomaton(patterns: readonly SecretPattern[]): Automaton | undefined {
  const states = 1 + patterns.reduce((sum, { units }) => sum + comparedOf(units), 0)
  if (states > STATES_MAX) return undefined
  const automaton = new Automaton(states)
  for (const pattern of patterns) automaton.add(pattern)
  automaton.link()
  return automaton
}

function comparedOf(units: Uint8Array): number {
  return Math.min(units.length, COMPARED_MAX)
}

function scan(automaton: Automaton, decoded: DecodedText, masked: MaskedSpans): void {
  const { lengths, beyond, depths } = automaton
  const { folded } = decoded
  const cuts = cutsOf(decoded)
  let state = 0
  for (let at = 0; at < folded.length; at++) {
    state = automaton.step(state, folded[at] ?? 0)
    if (state === 0) continue
    const anywhere = lengths.anywhere[state] ?? 0
    const base64 = lengths.base64[state] ?? 0
    const word = lengths.word[state] ?? 0
    const end = at + 1 + (beyond[state] ?? 0)
    if (anywhere > 0) masked.mask(decoded, at + 1 - anywhere, end)
    if (base64 > 0) masked.maskBase64(decoded, at + 1 - base64, end)
    if (word > 0) maskWord(decoded, at, word, masked)
    const depth = depths[state] ?? 0
    if (depth >= CUT_MIN && cuts.includes(at + 1)) masked.mask(decoded, at + 1 - depth, at + 1)
  }
}

/** What may follow the place where a text was cut: marks, and the rest of an escape that is not whole. */
const CUT_TAIL = /(?:%(?:25)*[\da-f]?|\\+(?:[ux][\da-f]{0,3})?|&[#\da-z]{0,8})?[….,;:)\]}"'\ufffd ]{0,10}$/i
const CUT_TAIL_MAX = 24

/** Where a text may have been cut: at its end, between the marks there, which may be part of the secret, and before what follows. */
function cutsOf({ codes }: DecodedText): readonly number[] {
  const tail = String.fromCharCode(...codes.subarray(Math.max(0, codes.length - CUT_TAIL_MAX)))
  const [after = ''] = CUT_TAIL.exec(tail) ?? []
  const [marks = ''] = /[….,;:)\]}"'\ufffd ]*$/.exec(tail) ?? []
  const betweenMarks = Array.from({ length: marks.length + 1 }, (_, at) => codes.length - at)
  return [...betweenMarks, codes.length - after.length]
}

/** Masks a short secret only where it is a whole word. */
function maskWord(decoded: DecodedText, at: number, length: number, masked: MaskedSpans): void {
  if (isWordUnit(decoded.codes[at + 1])) return
  const start = at + 1 - length
  if (!isWordUnit(decoded.codes[start - 1])) masked.mask(decoded, start, at + 1)
}

function isWordUnit(code: number | undefined): boolean {
  return code !== undefined && /[\p{L}\p{N}]/u.test(String.fromCharCode(code))
}

/** The parts of one text that are masked. */
class MaskedSpans {
  readonly #length: number
  /** Spans that begin minus spans that end, at each index; allocated with the first span. */
  #changes: Int32Array | undefined
  /** The base64 text that was masked last, and its end. */
  #base64Text: DecodedText | undefined
  #base64End = 0

  constructor({ length }: string) {
    this.#length = length
  }

  mask(decoded: DecodedText, start: number, end: number): void {
    this.#changes ??= new Int32Array(this.#length + 1)
    const from = decoded.starts[Math.max(0, start)] ?? 0
    const to = decoded.ends[Math.min(end, decoded.ends.length) - 1] ?? this.#length
    this.#changes[from] = (this.#changes[from] ?? 0) + 1
    this.#changes[to] = (this.#changes[to] ?? 0) - 1
  }

  /** Masks the whole base64 text around a match. */
  maskBase64(decoded: DecodedText, start: number, end: number): void {
    if (this.#base64Text === decoded && end <= this.#base64End) return
    const { codes } = decoded
    let first = start
    // Padding ends a base64 text, so a name before `=` is not part of it.
    while (first > 0 && codes[first - 1] !== PADDING && isBase64Unit(codes[first - 1])) first -= 1
    let last = end
    while (last < codes.length && isBase64Unit(codes[last])) last += 1
    this.#base64Text = decoded
    this.#base64End = last
    this.mask(decoded, first, last)
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
