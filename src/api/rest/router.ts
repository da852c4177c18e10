import type { PathSegment, PathTemplate, TemplateVariable } from './template.ts'

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
