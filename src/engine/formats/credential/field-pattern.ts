import { RE2JS, RE2JSException } from 're2js'

/** Longest value that is matched against a pattern, in UTF-16 units. */
const PATTERN_VALUE_LENGTH_MAX = 512

/** Longest pattern, in UTF-16 units. */
export const PATTERN_LENGTH_MAX = 512

/**
 * Most instructions of all patterns of one form. A match takes at most one step per instruction and character: for the
 * longest values tens of milliseconds for a whole form.
 */
const PROGRAM_SIZE_MAX = 1_100

/** Upper bound of the instructions before anything is compiled: counted repetition is compiled by copying its operand. */
const EXPANSION_MAX = 50_000

/**
 * Most code points in the ranges of a case-insensitive pattern: compiling looks up the other case of each, 30 ns per code
 * point. A Unicode class such as `\pL` counts as `UNICODE_CLASS_FOLDED`.
 */
const FOLDED_MAX = 32_768
const UNICODE_CLASS_FOLDED = 8_192

/** A flag group that makes the pattern case-insensitive. */
const IGNORES_CASE = /\(\?[a-oq-z-]*i/i

/** A Unicode class, or a range with both ends. Outside of a class it is not a range; counting it is harmless. */
const RANGE = /\\p|(\\x\{[\da-f]+\}|\\x[\da-f]{2}|\\[0-7]{1,3}|.)-(\\x\{[\da-f]+\}|\\x[\da-f]{2}|\\[0-7]{1,3}|.)/gisu

/** A counted repetition; the first group matches when it repeats a group or a repetition, which multiplies. */
const COUNTED = /([)}]?)\{(\d+)(?:,(\d*))?\}/g

const TOO_LARGE = 'repeats too much: use smaller numbers in {n,m}'
const TOO_WIDE = 'has too many or too large ranges of characters for a pattern that ignores case'

/**
 * The problem of a regular expression, `undefined` when it is valid.
 *
 * Patterns come from authors of definitions and run in this process, in RE2's linear time, without back references and
 * lookaround. Limits of length and program size bound the cost of compiling and matching.
 */
export function findPatternProblem(pattern: string): string | undefined {
  if (pattern.length > PATTERN_LENGTH_MAX) return `must have at most ${PATTERN_LENGTH_MAX} characters`
  if (expansionOf(pattern) > EXPANSION_MAX) return TOO_LARGE
  if (IGNORES_CASE.test(pattern) && foldedOf(pattern) > FOLDED_MAX) return TOO_WIDE
  try {
    return RE2JS.compile(pattern).programSize() > PROGRAM_SIZE_MAX ? TOO_LARGE : undefined
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    return `is not a regular expression in RE2 syntax, which has no back references and no lookaround: ${error.message}`
  }
}

/** True when the patterns of one form, each of them valid, exceed the limit together. */
export function areTooLargeTogether(patterns: readonly string[]): boolean {
  return patterns.reduce((sum, pattern) => sum + RE2JS.compile(pattern).programSize(), 0) > PROGRAM_SIZE_MAX
}

/** True when the whole value matches a valid pattern; values longer than the limit do not match. */
export function matchesPattern(pattern: string, value: string): boolean {
  return value.length <= PATTERN_VALUE_LENGTH_MAX && RE2JS.compile(pattern).testExact(value)
}

/** Upper bound of the code points whose case compiling looks up. */
function foldedOf(pattern: string): number {
  let folded = 0
  for (const [, first, last] of pattern.matchAll(RANGE))
    folded += last === undefined ? UNICODE_CLASS_FOLDED : Math.max(0, codePointOf(last) - codePointOf(first))
  return folded
}

/** The code point of a character: literal, hexadecimal (`\x{10ffff}`, `\xff`) or octal (`\377`). */
function codePointOf(text = ''): number {
  if (/^\\x/i.test(text)) return Number.parseInt(text.replace(/[\\x{}]/gi, ''), 16)
  return /^\\\d/.test(text) ? Number.parseInt(text.slice(1), 8) : (text.codePointAt(0) ?? 0)
}

/** Upper bound of the compiled size: length of the pattern times the repetitions that may be nested. */
function expansionOf(pattern: string): number {
  let nested = 1
  let innermost = 1
  for (const [, before, minimum, maximum] of pattern.matchAll(COUNTED)) {
    const count = Math.max(1, Number(minimum), Number(maximum ?? 0))
    if (before === '') innermost = Math.max(innermost, count)
    else nested *= count
  }
  return pattern.length * nested * innermost
}
