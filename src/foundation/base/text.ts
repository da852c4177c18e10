import type { Json } from '../json/json.ts'

/** Maximum edit distance of a suggestion, by the length of the word. */
const EDITS_MAX = 3
const LETTERS_PER_EDIT = 3

/** Longest word that is compared, in UTF-16 units. */
const WORD_LENGTH_MAX = 64

/** Most candidates that one word is compared with. */
const CANDIDATES_MAX = 500

/** Most suggestions of one `createSuggester`. */
const SUGGESTIONS_MAX = 100

/** `terms_url` as records name it: `termsUrl`. */
export type CamelCase<Name> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name

/** A name in snake_case as fields of records have it: `createdAt` of `created_at`. */
export function camelCase(name: string): string {
  return name.includes('_') ? name.replace(/_([a-z0-9])/g, (_, first: string) => first.toUpperCase()) : name
}

/** `suggest` for the words of one document, which makes no suggestion after the first 100: bounds the cost of garbage. */
export function createSuggester(): typeof suggest {
  let left = SUGGESTIONS_MAX
  return (word, known) => (left-- > 0 ? suggest(word, known) : '')
}

/** Most names that a message lists. */
const NAMES_LISTED_MAX = 20

/**
 * What to write instead of an unknown name: the one that was probably meant, and all there are when they are few. Follows a
 * sentence without its stop: `, did you mean x? There are x, y`, `; there are x, y`, or nothing.
 */
export function suggestOneOf(word: string, known: Iterable<string>): string {
  const names = [...new Set(known)].sort()
  const near = suggest(word, names)
  if (names.length > NAMES_LISTED_MAX) return near
  const all = names.length === 0 ? 'here are none' : `here ${names.length === 1 ? 'is' : 'are'} ${names.join(', ')}`
  return near === '' ? `; t${all}` : `${near} T${all}`
}

/** `must be one of a, b, c`, in this order and at most 20 of them, with the one that was probably meant by a text that is none. */
export function mustBeOneOf(given: unknown, choices: readonly string[], suggester = suggest): string {
  const near = typeof given === 'string' ? suggester(given, choices) : ''
  const more = choices.length - NAMES_LISTED_MAX
  const all = choices.slice(0, NAMES_LISTED_MAX).join(', ')
  return `must be one of ${all}${more > 0 ? ` and ${more} more` : ''}${near}`
}

/** A value of an enum of JSON Schema for `mustBeOneOf`: a text without quotes, unless it could be taken for another type. */
export function textOfChoice(choice: Json): string {
  return typeof choice === 'string' && !/^(?:|-?\d.*|true|false|null)$/.test(choice) ? choice : JSON.stringify(choice)
}

/** `, did you mean x?` when a known word is close to the given one, else nothing. */
export function suggest(word: string, known: Iterable<string>): string {
  const near = findNear(word, known)
  return near === undefined ? '' : `, did you mean ${near}?`
}

/**
 * The known word that is closest to the given one, the first of several; `undefined` when none is close.
 *
 * The cost is bounded for any arguments: long words are not compared, and only the first candidates are.
 */
export function findNear(word: string, known: Iterable<string>): string | undefined {
  if (word.length > WORD_LENGTH_MAX) return undefined
  const given = word.toLowerCase()
  const allowed = Math.min(EDITS_MAX, Math.max(1, Math.floor(word.length / LETTERS_PER_EDIT)))
  let nearest: string | undefined
  let fewest = allowed + 1
  let compared = 0
  for (const candidate of known) {
    if (compared++ === CANDIDATES_MAX) break
    const edits = editDistance(given, candidate.toLowerCase(), fewest)
    if (edits < fewest) [nearest, fewest] = [candidate, edits]
  }
  return nearest
}

/** Damerau-Levenshtein distance (a transposition is one edit); `limit` when it is that or more. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    let least = i
    // Cells further from the diagonal than the limit cannot lead below it.
    for (let j = 1; j <= b.length; j += 1) {
      if (Math.abs(i - j) >= limit) {
        row.push(limit)
        continue
      }
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = isSwap ? (beforePrevious[j - 2] ?? 0) + 1 : limit
      const edits = Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, substitution, swap)
      row.push(edits)
      least = Math.min(least, edits)
    }
    // A swap reaches two rows back, so one row above the limit is not the end yet.
    if (least > limit) return limit
    beforePrevious = previous
    previous = row
  }
  return Math.min(limit, previous[b.length] ?? limit)
}

/** The text, cut to `lengthMax` UTF-16 units with an ellipsis at its end. */
export function truncateText(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1).toWellFormed()}…`
}

/** A number with its noun: `1 character`, `2 characters`. @param plural where it is not the noun with an s */
export function formatQuantity(count: number | bigint, noun: string, plural = `${noun}s`): string {
  return `${count} ${Number(count) === 1 ? noun : plural}`
}

/** The text without the characters at its end that equal `character`. A regular expression such as `/\/+$/` is quadratic. */
export function trimEnd(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end -= 1
  return text.slice(0, end)
}

/** A text for comparison in a search: without case and accents. */
export function foldText(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase()
}

/** The words of a search as `foldText` gives them; empty for a text without any. */
export function searchWords(text: string): readonly string[] {
  return foldText(text)
    .split(/\s+/u)
    .filter((word) => word !== '')
}
