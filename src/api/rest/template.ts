/** One step of a path: a word that must be there, any one segment, or all that are left. */
export type Segment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'one' }
  | { readonly kind: 'rest' }

/** A variable and the segments it takes: from `start`, up to `end` or to the end of the path. */
export interface TemplateVariable {
  /** Field names from the request message inwards. */
  readonly fieldPath: readonly string[]
  readonly start: number
  readonly end: number | undefined
  /** Spans several segments: slashes the client escaped stay escaped. */
  readonly isMulti: boolean
}

/** A path pattern of `google.api.http`, parsed. */
export interface Template {
  readonly segments: readonly Segment[]
  readonly variables: readonly TemplateVariable[]
  /** The custom verb after the last colon, or empty. */
  readonly verb: string
}

/** Segments, each a variable or plain, then perhaps a verb. */
const TEMPLATE = /^((?:\/(?:\{[^{}]+\}|[^/{}:]+))+)(?::([^/{}:]+))?$/

/**
 * Parses a pattern such as `/sync-job-run/{id}/stop`, `/v1/{name=projects/**}` or `/item/{id}:archive`.
 *
 * Grammar: google/api/http.proto, "Path template syntax". A pattern of the contract that does not follow it is a bug and
 * throws.
 */
export function parseTemplate(pattern: string): Template {
  const match = TEMPLATE.exec(pattern)
  if (match === null) throw new Error(`${pattern}: not a path template`)
  const [, path = '', verb = ''] = match
  const segments: Segment[] = []
  const variables: TemplateVariable[] = []
  for (const part of splitOutsideBraces(path.slice(1))) {
    const variable = /^\{([\w.]+)(?:=(.+))?\}$/.exec(part)
    if (variable === null) {
      segments.push(parseSegment(part, pattern))
      continue
    }
    const [, fieldPath = '', inner = '*'] = variable
    const start = segments.length
    segments.push(...inner.split('/').map((text) => parseSegment(text, pattern)))
    const isOpen = segments.at(-1)?.kind === 'rest'
    variables.push({
      fieldPath: fieldPath.split('.'),
      start,
      end: isOpen ? undefined : segments.length,
      isMulti: isOpen || segments.length - start > 1,
    })
  }
  if (segments.slice(0, -1).some(({ kind }) => kind === 'rest')) throw new Error(`${pattern}: ** must come last`)
  return { segments, variables, verb }
}

function parseSegment(text: string, pattern: string): Segment {
  if (text === '*') return { kind: 'one' }
  if (text === '**') return { kind: 'rest' }
  if (text === '' || /[{}*]/.test(text)) throw new Error(`${pattern}: bad segment "${text}"`)
  return { kind: 'literal', text }
}

/** Splits at slashes, but not inside `{…}`. */
function splitOutsideBraces(path: string): string[] {
  return path.match(/\{[^}]+\}|[^/]+/g) ?? []
}
