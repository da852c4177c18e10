/** One step of a path: a literal, any one segment (`*`), or all that are left, perhaps none (`**`). */
type PathSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'one' }
  | { readonly kind: 'rest' }

/** A variable and the segments it takes: from `start`, up to `end` or to the end of the path. */
interface TemplateVariable {
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

/** What a path and a verb lead to. */
export type RouteMatch<Target> =
  | { readonly kind: 'found'; readonly target: Target; readonly variables: readonly PathVariable[] }
  /** The path exists, for these verbs. */
  | { readonly kind: 'other_verb'; readonly allow: readonly string[] }
  | { readonly kind: 'unknown' }

/** A variable's text as the path gives it, not yet percent-decoded. */
export interface PathVariable {
  readonly variable: TemplateVariable
  readonly text: string
}

/** A `custom` pattern of `google.api.http` with this kind takes every HTTP verb. */
const ANY_VERB = '*'

interface Leaf<Target> {
  readonly template: PathTemplate
  readonly target: Target
}

/** A place in the tree of paths. */
interface Node<Target> {
  readonly literals: Map<string, Node<Target>>
  one: Node<Target> | undefined
  rest: Node<Target> | undefined
  /** What ends here: custom verb, then HTTP verb. */
  readonly leaves: Map<string, Map<string, Leaf<Target>>>
}

/**
 * Finds the route of a request. At each segment a literal beats `*`, which beats `**`; a branch that leads nowhere is
 * left again.
 */
export class PathRouter<Target> {
  readonly #root: Node<Target> = createNode()
  /** Every custom verb of a template, with its colon, the longest first: `/a:b:c` may end in `:c` or in `:b:c`. */
  #customVerbs: readonly string[] = []

  /**
   * @param httpVerb `*` for any that has no route of its own
   * @throws Error when the verb already has a route of the same shape
   */
  add(httpVerb: string, template: PathTemplate, target: Target): void {
    if (template.verb !== '')
      this.#customVerbs = [...new Set([...this.#customVerbs, `:${template.verb}`])].sort((a, b) => b.length - a.length)
    const node = template.segments.reduce(descend<Target>, this.#root)
    const leaves = node.leaves.get(template.verb) ?? new Map<string, Leaf<Target>>()
    if (leaves.has(httpVerb)) throw new Error(`two routes for ${httpVerb} of the same path`)
    node.leaves.set(template.verb, leaves.set(httpVerb, { template, target }))
  }

  /**
   * @param httpVerb HEAD leads to GET where it has no route of its own
   * @param path begins with a slash, without query, not percent-decoded
   */
  match(httpVerb: string, path: string): RouteMatch<Target> {
    const allow = new Set<string>()
    for (const customVerb of this.#customVerbs) {
      if (!path.endsWith(customVerb)) continue
      const stem = path.slice(1, -customVerb.length).split('/')
      const leaf = find(this.#root, stem, 0, customVerb.slice(1), httpVerb, allow)
      if (leaf !== undefined) return found(leaf, stem)
    }
    const segments = path.slice(1).split('/')
    const leaf = find(this.#root, segments, 0, '', httpVerb, allow)
    if (leaf !== undefined) return found(leaf, segments)
    return allow.size === 0 ? { kind: 'unknown' } : { kind: 'other_verb', allow: [...allow].sort() }
  }
}

function createNode<Target>(): Node<Target> {
  return { literals: new Map(), one: undefined, rest: undefined, leaves: new Map() }
}

function descend<Target>(node: Node<Target>, segment: PathSegment): Node<Target> {
  if (segment.kind === 'one') {
    node.one ??= createNode()
    return node.one
  }
  if (segment.kind === 'rest') {
    node.rest ??= createNode()
    return node.rest
  }
  const child = node.literals.get(segment.text) ?? createNode()
  node.literals.set(segment.text, child)
  return child
}

/** The leaf for the verb; verbs of the leaves passed on the way are noted in `allow`. */
function find<Target>(
  node: Node<Target> | undefined,
  segments: readonly string[],
  at: number,
  customVerb: string,
  httpVerb: string,
  allow: Set<string>,
): Leaf<Target> | undefined {
  if (node === undefined) return undefined
  const segment = segments[at]
  // `**` takes what is left, which may be nothing.
  const rest = () => (node.rest === undefined ? undefined : pick(node.rest, customVerb, httpVerb, allow))
  if (segment === undefined) return pick(node, customVerb, httpVerb, allow) ?? rest()
  const next = (child: Node<Target> | undefined) => find(child, segments, at + 1, customVerb, httpVerb, allow)
  return next(node.literals.get(segment)) ?? (segment === '' ? undefined : next(node.one)) ?? rest()
}

function pick<Target>(node: Node<Target>, customVerb: string, httpVerb: string, allow: Set<string>) {
  const leaves = node.leaves.get(customVerb)
  const leaf = leaves?.get(httpVerb) ?? (httpVerb === 'HEAD' ? leaves?.get('GET') : undefined) ?? leaves?.get(ANY_VERB)
  if (leaf === undefined) for (const verb of leaves?.keys() ?? []) allow.add(verb)
  return leaf
}

function found<Target>({ template, target }: Leaf<Target>, segments: readonly string[]): RouteMatch<Target> {
  const variables = template.variables.map((variable) => ({
    variable,
    text: segments.slice(variable.start, variable.end).join('/'),
  }))
  return { kind: 'found', target, variables }
}
