/** One step of a path: a literal, any one segment (`*`), or all that are left, perhaps none (`**`). */
export type PathSegment =
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
export interface PathTemplate {
  readonly segments: readonly PathSegment[]
  readonly variables: readonly TemplateVariable[]
  /** The custom verb after the last colon, or empty. */
  readonly verb: string
}

/** Characters of a literal: those of a path segment (RFC 3986, `pchar`) without `*`; colons only outside variables. */
const LITERAL = /^(?:[\w.~!$&'()+,;=:@-]|%[\dA-Fa-f]{2})+$/
const FIELD_PATH = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$/
/** A segment that begins with a variable or a wildcard, and the custom verb behind it. */
const SEGMENT_AND_VERB = /^(\{[^{}]*\}|\*\*?)(?::(.*))?$/

/**
 * Parses a pattern such as `/sync-job-run/{id}/stop`, `/v1/{name=projects/**}` or `/item/{id}:archive`.
 *
 * Grammar: google/api/http.proto, "Path template syntax". The custom verb follows the first colon behind a variable or
 * wildcard, else the last colon of the path.
 *
 * @throws Error when the pattern does not follow the grammar, binds a field twice, or has a segment after `**`
 */
export function parsePathTemplate(pattern: string): PathTemplate {
  if (!pattern.startsWith('/')) throw malformed(pattern, 'it must begin with a slash')
  const parts = splitOutsideBraces(pattern.slice(1))
  const [last, verb] = splitVerb(parts.pop() ?? '', pattern)
  const segments: PathSegment[] = []
  const variables: TemplateVariable[] = []
  for (const part of [...parts, last]) {
    if (!part.startsWith('{')) {
      segments.push(parseSegment(part, pattern))
      continue
    }
    const { fieldPath, inner } = parseVariable(part, pattern)
    const start = segments.length
    segments.push(...inner.map((text) => parseSegment(text, pattern)))
    const isOpen = segments.at(-1)?.kind === 'rest'
    variables.push({
      fieldPath,
      start,
      end: isOpen ? undefined : segments.length,
      isMulti: isOpen || segments.length - start > 1,
    })
  }
  if (segments.slice(0, -1).some(({ kind }) => kind === 'rest')) throw malformed(pattern, '** must come last')
  const names = variables.map(({ fieldPath }) => fieldPath.join('.'))
  if (new Set(names).size < names.length) throw malformed(pattern, 'a field is bound twice')
  return { segments, variables, verb }
}

/** The last segment without its custom verb, and that verb; empty when there is none. */
function splitVerb(part: string, pattern: string): readonly [segment: string, verb: string] {
  const [, segment, behind] = SEGMENT_AND_VERB.exec(part) ?? []
  const colon = part.lastIndexOf(':')
  if (segment === undefined && (colon === -1 || part.includes('{'))) return [part, '']
  const verb = segment === undefined ? part.slice(colon + 1) : behind
  if (verb === undefined) return [part, '']
  if (!LITERAL.test(verb)) throw malformed(pattern, 'its custom verb is not a literal')
  return [segment ?? part.slice(0, colon), verb]
}

function parseVariable(part: string, pattern: string) {
  const [, name = '', inner = '*'] = /^\{([^{}=]*)(?:=([^{}]*))?\}$/.exec(part) ?? []
  if (!FIELD_PATH.test(name)) throw malformed(pattern, `${part} names no field`)
  if (inner.includes(':')) throw malformed(pattern, `${part} has a custom verb inside`)
  return { fieldPath: name.split('.'), inner: inner.split('/') }
}

function parseSegment(text: string, pattern: string): PathSegment {
  if (text === '*') return { kind: 'one' }
  if (text === '**') return { kind: 'rest' }
  if (!LITERAL.test(text)) throw malformed(pattern, `"${text}" is not a segment`)
  return { kind: 'literal', text }
}

/** Splits at slashes, but not inside `{…}`. */
function splitOutsideBraces(path: string): string[] {
  return path.split(/\/(?![^{]*\})/)
}

function malformed(pattern: string, why: string): Error {
  return new Error(`${pattern}: not a path template: ${why}`)
}
