import { formatQuantity } from '../../base/index.ts'

/**
 * What a rule of the contract asks for, in words that read behind a field's name. The library's own texts name regular
 * expressions and count "1 characters".
 */
export function describeRule(text: string): string {
  const [, bound, count, noun] = BOUND.exec(text) ?? []
  if (bound === 'at least' && count === '1' && noun === 'character') return 'must not be empty'
  if (noun !== undefined) return `must have ${bound} ${formatQuantity(Number(count), noun)}`
  const pattern = PATTERN.exec(text)?.[1]
  return pattern === undefined ? text.replace(/^value /, '') : describePattern(pattern)
}

const BOUND =
  /^(?:value )?must (?:be|contain) (at least|at most|no more than) (\d+) (character|byte|item|pair)(?:s|\(s\))$/
const PATTERN = /^(?:value )?does not match regex pattern `(.*)`$/s

/** Patterns that are no set of characters. */
const KNOWN_PATTERNS: Readonly<Record<string, string>> = {
  '^(\\*|[a-z_]+:[a-z_]*\\*?)$':
    'must be an event such as sync_job_run:completed, or a beginning such as sync_job_run:*, or *',
}

const CHARACTER_SET = /^\^\[(.+)\]\{(\d+),(\d+)\}\$$/
const RANGES = [
  ['A-Za-z', 'letters'],
  ['a-z', 'lower-case letters'],
  ['A-Z', 'capital letters'],
  ['0-9', 'digits'],
] as const

/** `^[a-z0-9_-]{1,128}$`: `must have 1 to 128 characters: lower-case letters, digits, "_" and "-" only`. */
function describePattern(pattern: string): string {
  const [, set, least, most] = CHARACTER_SET.exec(pattern) ?? []
  if (set === undefined) return KNOWN_PATTERNS[pattern] ?? `must match the pattern ${pattern}`
  const words: string[] = []
  let rest = set
  for (const [range, word] of RANGES)
    if (rest.includes(range)) {
      words.push(word)
      rest = rest.replace(range, '')
    }
  const all = [...words, ...Array.from(rest, (character) => `"${character}"`)]
  const last = all.pop()
  return `must have ${least} to ${most} characters: ${all.length === 0 ? last : `${all.join(', ')} and ${last}`} only`
}
