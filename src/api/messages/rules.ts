import { create, type DescMessage, type Message } from '@bufbuild/protobuf'
import type { Path } from '@bufbuild/protobuf/reflect'
import { createValidator } from '@bufbuild/protovalidate'
import { formatQuantity } from '../../base/index.ts'
import type { Finding } from '../operation.ts'

/** Longest text that a pattern of the contract may match, in UTF-16 units; patterns are for names and ids. */
const PATTERN_TEXT_LENGTH_MAX = 4_096

const patterns = new Map<string, RegExp>()

/** Matches patterns with RegExp: protovalidate's RE2 takes 50 ms per MiB, and the patterns are the contract's own. */
const validator = createValidator({ regexMatch: matchesPattern })

/** The violations of the rules of the contract (`buf.validate`) in a message. */
export function validateRules(desc: DescMessage, message: Message): readonly Finding[] {
  const result = validator.validate(desc, message)
  switch (result.kind) {
    case 'valid':
      return []
    case 'invalid':
      return result.violations.map(({ field, message: text, ruleId }) => ({
        field: textOfPath(field),
        description: describeRule(text),
        rule: ruleId,
      }))
    case 'error':
      // The rule itself is invalid; buf lint finds it first.
      throw result.error
  }
}

function matchesPattern(source: string, text: string): boolean {
  if (text.length > PATTERN_TEXT_LENGTH_MAX) return false
  const pattern = patterns.get(source) ?? new RegExp(source, 'u')
  patterns.set(source, pattern)
  return pattern.test(text)
}

/** Compiles the rules of a message type at start; otherwise the first request would wait for it (up to 33 ms). */
export function precompileRules(desc: DescMessage): void {
  validator.validate(desc, create(desc))
}

/** A field path in errors: `resources[2].depends_on`; `request` for a rule of the whole message. */
function textOfPath(path: Path): string {
  if (path.length === 0) return 'request'
  return path.reduce((text, step) => {
    if (step.kind === 'list_sub') return `${text}[${step.index}]`
    const name = step.kind === 'map_sub' ? String(step.key) : step.name
    return text === '' ? name : `${text}.${name}`
  }, '')
}

/**
 * A rule of the contract in words that follow a field's name. The library's own texts contain regular expressions and
 * "1 characters".
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
