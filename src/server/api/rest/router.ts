/** The result of looking up a path and a verb. */
export type RouteMatch<Target> =
  | { readonly kind: 'found'; readonly target: Target; readonly variables: readonly PathVariable[] }
  /** The path exists, for these verbs. */
  | { readonly kind: 'other_verb'; readonly allow: readonly string[] }
  | { readonly kind: 'unknown' }

/** The segment of a path that gives a field of the request. */
export interface PathVariable {
  readonly field: string
  /** As the path gives it, not yet percent-decoded. */
  readonly text: string
}

/** A path pattern of `google.api.http`: literal segments, and the fields that the others give. */
export type PathPattern = readonly PathSegment[]

type PathSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'variable'; readonly field: string }

/** Characters of a literal: those of a path segment (RFC 3986, `pchar`) without `*` and `:`. */
const LITERAL = /^(?:[\w.~!$&'()+,;=@-]|%[\dA-Fa-f]{2})+$/
const VARIABLE = /^\{([A-Za-z_]\w*)\}$/

/**
 * Parses a pattern such as `/sync-job-run/{id}/stop`: literals, and fields of the request that take one segment each.
 *
 * @throws Error for every other form of google/api/http.proto (`*`, `**`, `{name=projects/*}`, `{part.name}`, `:verb`),
 *   and for a field that is bound twice
 */
export function parsePathPattern(pattern: string): PathPattern {
  if (!pattern.startsWith('/')) throw unsupported(pattern, 'it must begin with a slash')
  const segments = pattern
    .slice(1)
    .split('/')
    .map((text): PathSegment => {
      const field = VARIABLE.exec(text)?.[1]
      if (field !== undefined) return { kind: 'variable', field }
      if (!LITERAL.test(text)) throw unsupported(pattern, `"${text}" is neither a literal nor one field as in {id}`)
      return { kind: 'literal', text }
    })
  const fields = segments.flatMap((segment) => (segment.kind === 'variable' ? [segment.field] : []))
  if (new Set(fields).size < fields.length) throw unsupported(pattern, 'a field is bound twice')
  return segments
}

function unsupported(pattern: string, why: string): Error {
  return new Error(`${pattern} is not served over REST: ${why}`)
}

interface Leaf<Target> {
  readonly pattern: PathPattern
  readonly target: Target
}

/** A node in the tree of paths. */
interface PathNode<Target> {
  readonly literals: Map<string, PathNode<Target>>
  variable: PathNode<Target> | undefined
  /** The routes that end at this node, by HTTP verb. */
  readonly leaves: Map<string, Leaf<Target>>
}

/** Finds the route of a request. At each segment a literal is tried before a variable. */
export class PathRouter<Target> {
  readonly #root: PathNode<Target> = createNode()
  /** Of all routes; several for a path with several verbs. */
  readonly patterns: PathPattern[] = []

  /** @throws Error when the verb already has a route of the same shape */
  add(httpVerb: string, pattern: PathPattern, target: Target): void {
    const { leaves } = pattern.reduce(descend<Target>, this.#root)
    if (leaves.has(httpVerb)) throw new Error(`two routes for ${httpVerb} of the same path`)
    leaves.set(httpVerb, { pattern, target })
    this.patterns.push(pattern)
  }

  /**
   * @param httpVerb HEAD leads to GET where it has no route of its own
   * @param path begins with a slash, without query, not percent-decoded
   */
  match(httpVerb: string, path: string): RouteMatch<Target> {
    const allow = new Set<string>()
    const segments = path.slice(1).split('/')
    const leaf = find(this.#root, segments, 0, httpVerb, allow)
    if (leaf !== undefined) return found(leaf, segments)
    return allow.size === 0 ? { kind: 'unknown' } : { kind: 'other_verb', allow: [...allow].sort() }
  }
}

function createNode<Target>(): PathNode<Target> {
  return { literals: new Map(), variable: undefined, leaves: new Map() }
}

function descend<Target>(node: PathNode<Target>, segment: PathSegment): PathNode<Target> {
  if (segment.kind === 'variable') {
    node.variable ??= createNode()
    return node.variable
  }
  const child = node.literals.get(segment.text) ?? createNode()
  node.literals.set(segment.text, child)
  return child
}

/** The leaf for the verb; verbs of other leaves at the same path are added to `allow`. */
function find<Target>(
  node: PathNode<Target> | undefined,
  segments: readonly string[],
  at: number,
  httpVerb: string,
  allow: Set<string>,
): Leaf<Target> | undefined {
  if (node === undefined) return undefined
  const segment = segments[at]
  if (segment === undefined) return pick(node, httpVerb, allow)
  const next = (child: PathNode<Target> | undefined) => find(child, segments, at + 1, httpVerb, allow)
  return next(node.literals.get(segment)) ?? (segment === '' ? undefined : next(node.variable))
}

function pick<Target>({ leaves }: PathNode<Target>, httpVerb: string, allow: Set<string>): Leaf<Target> | undefined {
  const leaf = leaves.get(httpVerb) ?? (httpVerb === 'HEAD' ? leaves.get('GET') : undefined)
  if (leaf === undefined) for (const verb of leaves.keys()) allow.add(verb)
  return leaf
}

function found<Target>({ pattern, target }: Leaf<Target>, segments: readonly string[]): RouteMatch<Target> {
  const variables = pattern.flatMap((segment, at) =>
    segment.kind === 'variable' ? [{ field: segment.field, text: segments[at] ?? '' }] : [],
  )
  return { kind: 'found', target, variables }
}
