import { Failure } from '../base/errors.ts'
import { isJsonObject, type Json, type JsonObject } from './json.ts'

/** A parsed path: object keys and array indexes, in order. */
export type DotPath = readonly (string | number)[]

/** A parsed path, or the problem with its text, worded to follow the field's name. */
export type DotPathResult = { readonly steps: DotPath } | { readonly problem: string }

/** Longest text of a path. */
const PATH_LENGTH_MAX = 1024

/** What a name may hold without quotes. */
const NAME = /[^\s.[\]"'`\\{}]+/y
const PLAIN_NAME = /^[^\s.[\]"'`\\{}]+$/
const INDEX = /\[(\d{1,9})\]/y
/** `["any name"]` or `['any name']`; quotes and backslashes are escaped with a backslash. */
const QUOTED = /\[(?:"((?:[^"\\]|\\["'\\])*)"|'((?:[^'\\]|\\["'\\])*)')\]/y
const WILDCARD = /\[\*\]|(?:^|\.)\*(?=\.|\[|$)|\.\./

/**
 * Parses a path into a JSON value: `data.items[0].id`, `["@odata.nextLink"]`, `['a.b'][0].c`, with or without a leading `$`.
 *
 * Names are separated by dots; a name with dots, blanks, brackets or quotes is written in brackets and quotes. A step of
 * digits (`items.0.id`) is an index of a list or a key of that name. Linear in the length of the text.
 */
export function tryParseDotPath(text: string): DotPathResult {
  const steps = text.length > PATH_LENGTH_MAX ? undefined : scanPath(text)
  if (steps !== undefined) return { steps }
  return { problem: `must be a path such as data.items or ["@odata.nextLink"]${suggestPath(text)}` }
}

/** The steps of a path; an empty text has none. @throws Failure DEFINITION_INVALID, never for a checked definition */
export function parseDotPath(text: string): DotPath {
  if (text === '') return []
  const read = tryParseDotPath(text)
  if ('steps' in read) return read.steps
  throw new Failure(
    'DEFINITION_INVALID',
    `the definition holds a path that is none: ${JSON.stringify(text.slice(0, 100))} ${read.problem}`,
  )
}

/** The text of a path after `prefix`, as `tryParseDotPath` reads it: `fields[2].name`, `headers["x.y"]`. */
export function formatDotPath(path: DotPath, prefix = ''): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`
    const isPlain = PLAIN_NAME.test(step) && step !== '*' && !(text === '' && /^(?:\$$|\/)/.test(step))
    if (!isPlain) return `${text}["${step.replaceAll(/["\\]/g, '\\$&')}"]`
    return text === '' ? step : `${text}.${step}`
  }, prefix)
}

/**
 * The value at the path, or `undefined` when any step is missing. Only own keys are followed.
 *
 * A dot may be part of a key: where an object has no key for a step, the step and the following ones are tried as one key,
 * the shortest first, so that `@odata.nextLink` finds the key of that name.
 */
export function getAtPath(value: Json | undefined, path: DotPath): Json | undefined {
  let current: Json | undefined = value
  for (let at = 0; at < path.length; at += 1) {
    const step = path[at] ?? ''
    if (Array.isArray(current)) current = current[Number(step)]
    else if (!isJsonObject(current)) return undefined
    else if (Object.hasOwn(current, step)) current = current[step]
    else {
      const length = dottedNameLength(current, path, at)
      if (length === undefined) return undefined
      current = current[path.slice(at, at + length).join('.')]
      at += length - 1
    }
  }
  return current
}

/** How many steps from `at` on, joined with dots, make the shortest key of the object; `undefined` when none do. */
function dottedNameLength(object: JsonObject, path: DotPath, at: number): number | undefined {
  if (typeof path[at + 1] !== 'string') return undefined
  const rest = path.slice(at)
  const lengths = Object.keys(object).flatMap((name) => {
    if (!name.includes('.')) return []
    const parts = name.split('.')
    return parts.length <= rest.length && parts.every((part, index) => part === rest[index]) ? [parts.length] : []
  })
  return lengths.length === 0 ? undefined : Math.min(...lengths)
}

function scanPath(text: string): DotPath | undefined {
  const steps: (string | number)[] = []
  let at = /^\$(?:[.[]|$)/.test(text) ? 1 : 0
  if (text[at] === '.' && at === 1) at += 1
  const start = at
  while (at < text.length) {
    if (text[at] === '[') {
      const index = matchAt(INDEX, text, at)
      const quoted = index === null ? matchAt(QUOTED, text, at) : null
      if (index === null && quoted === null) return undefined
      steps.push(index === null ? unescapeQuoted(quoted?.[1] ?? quoted?.[2] ?? '') : Number(index[1]))
      at += (index ?? quoted)?.[0].length ?? 0
      continue
    }
    if (at > start) {
      if (text[at] !== '.') return undefined
      at += 1
    }
    const name = matchAt(NAME, text, at)?.[0]
    if (name === undefined || name === '*' || (steps.length === 0 && name.startsWith('/'))) return undefined
    steps.push(name)
    at += name.length
  }
  return steps.length === 0 ? undefined : steps
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

function unescapeQuoted(text: string): string {
  return text.replaceAll(/\\(.)/g, '$1')
}

/** Suggests a path for JSON pointers, jq filters, escaped dots and names with blanks; empty when no path is likely. */
function suggestPath(text: string): string {
  if (text.length > PATH_LENGTH_MAX) return `, at most ${PATH_LENGTH_MAX} characters long`
  if (text.includes('{{')) return ': placeholders have no effect here'
  if (WILDCARD.test(text)) return ': wildcards and ".." are possible in expressions only'
  const steps = text.startsWith('/')
    ? text
        .slice(1)
        .split('/')
        .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    : text
        .replace(/^\$?\.?/, '')
        .split(/(?<!\\)\./)
        .map((step) => step.replaceAll('\\.', '.').trim())
  const written = formatDotPath(steps)
  return steps.every((step) => step !== '' && !/["'`[\]\\{}]/.test(step)) ? `; did you mean ${written}?` : ''
}
