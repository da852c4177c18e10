import { create, type DescMessage, type DescOneof, type Message } from '@bufbuild/protobuf'
import { isReflectList, isReflectMap, isReflectMessage, type Path, reflect } from '@bufbuild/protobuf/reflect'
import { createValidator } from '@bufbuild/protovalidate'
import { formatQuantity, mustBeOneOf } from '../../../foundation/base/index.ts'
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
      return result.violations.map(({ field, message: text, ruleId }) => {
        const oneof = field.at(-1)
        if (oneof?.kind === 'oneof')
          return { field: textOfPath(field.slice(0, -1)), description: describeOneof(oneof), rule: ruleId }
        return {
          field: textOfPath(field),
          description: describeRule(text, () => valueAt(desc, message, field)),
          rule: ruleId,
        }
      })
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

/** Pause between two message types, milliseconds: requests come first. */
const PRECOMPILE_PAUSE_MS = 20

/**
 * Compiles the rules of message types one after another, from now on; otherwise the first request of each would wait for it (up
 * to 33 ms). All together take half of the time of a start, which does not wait for them.
 */
export function precompileRules(descs: Iterable<DescMessage>): Disposable {
  const queue = [...new Set(descs)].values()
  const timer = setInterval(() => {
    const { value: desc } = queue.next()
    if (desc === undefined) clearInterval(timer)
    else validator.validate(desc, create(desc))
  }, PRECOMPILE_PAUSE_MS)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
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

/** The value at the path of a violation; `undefined` where it leads through nothing. */
function valueAt(desc: DescMessage, message: Message, path: Path): unknown {
  return path.reduce<unknown>(
    (value, step) => {
      if (step.kind === 'field') return isReflectMessage(value) ? value.get(step) : undefined
      if (step.kind === 'list_sub') return isReflectList(value) ? value.get(step.index) : undefined
      return step.kind === 'map_sub' && isReflectMap(value) ? value.get(step.key) : undefined
    },
    reflect(desc, message),
  )
}

/** A required oneof by the fields of its message in JSON, which has no field of the oneof's own name. */
function describeOneof({ fields }: DescOneof): string {
  return `must have ${fields.map(({ name }) => name).join(' or ')}`
}

/**
 * A rule of the contract in words that follow a field's name. The library's own texts contain regular expressions and
 * "1 characters".
 *
 * @param given the value that broke the rule
 */
export function describeRule(text: string, given: () => unknown = () => undefined): string {
  const choices = CHOICES.exec(text)?.[1]
  if (choices !== undefined) return mustBeOneOf(given(), choices.split(', '))

  const [, bound, count, noun] = BOUND.exec(text) ?? []
  if (bound === 'at least' && count === '1' && noun === 'character') return 'must not be empty'
  if (noun !== undefined) return `must have ${bound} ${formatQuantity(Number(count), noun)}`
  const pattern = PATTERN.exec(text)?.[1]
  return pattern === undefined ? text.replace(/^value /, '') : describePattern(pattern)
}

const BOUND =
  /^(?:value )?must (?:be|contain) (at least|at most|no more than) (\d+) (character|byte|item|pair)(?:s|\(s\))$/
/** `string.in`; no choice of the contract has a comma. */
const CHOICES = /^(?:value )?must be in list \[(.*)\]$/s
const PATTERN = /^(?:value )?does not match regex pattern `(.*)`$/s

/** Patterns that are no set of characters. */
const KNOWN_PATTERNS: Readonly<Record<string, string>> = {
  '^(\\*|[a-z_]+:[a-z_]*\\*?)$':
    'must be an event such as sync_job_run:completed, or a beginning such as sync_job_run:*, or *',
  '^[a-z_]+:[a-z_]+$': 'must be the name of an event such as sync_job_run:completed',
  '^([*]|[a-z][a-z0-9_]*)$': 'must be a method such as list, or * for what all methods share',
  '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$': 'must be a language such as de or pt-BR',
  '^[\\t\\x20-\\x7e]*$': 'must have only ASCII characters that can be printed, spaces and tabs',
}

/** `[set]{1,64}`, or a set for the first character and one for the others: `[set][set]{0,63}`, `[set][set]*`. */
const CHARACTER_SETS = /^\^(?:\[([^\]]+)\])?\[([^\]]+)\](?:\{(\d+),(\d+)\}|\*)\$$/
const RANGES = [
  ['A-Za-z', 'letters'],
  ['a-z', 'lower-case letters'],
  ['A-Z', 'capital letters'],
  ['0-9', 'digits'],
] as const

/**
 * `^[a-z0-9_-]{1,128}$`: `must have 1 to 128 characters: lower-case letters, digits, "_" and "-" only`;
 * `^[a-z][a-z0-9_]{0,63}$`: `must have 1 to 64 characters: first a lower-case letter, then lower-case letters, digits and "_" only`.
 */
function describePattern(pattern: string): string {
  const known = KNOWN_PATTERNS[pattern]
  const [, first, set, least, most] = known === undefined ? (CHARACTER_SETS.exec(pattern) ?? []) : []
  if (set === undefined) return known ?? `must match the pattern ${pattern}`
  const all = `${joinWords(describeSet(set), 'and')} only`
  const before = first === undefined ? '' : `first ${joinWords(describeSet(first).map(singular), 'or')}, then `
  if (least === undefined) return `must have ${before}${all}`
  const extra = first === undefined ? 0 : 1
  return `must have ${Number(least) + extra} to ${Number(most) + extra} characters: ${before}${all}`
}

/** The characters of a set: `lower-case letters`, `"_"`. */
function describeSet(set: string): readonly string[] {
  const words: string[] = []
  let rest = set
  for (const [range, word] of RANGES)
    if (rest.includes(range)) {
      words.push(word)
      rest = rest.replace(range, '')
    }
  return [...words, ...Array.from(rest, (character) => `"${character}"`)]
}

/** `lower-case letters`: `a lower-case letter`. */
function singular(word: string): string {
  return word.startsWith('"') ? word : `a ${word.replace(/s$/, '')}`
}

function joinWords(words: readonly string[], conjunction: string): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${conjunction} ${words.at(-1)}`
}
