import {
  type AccountValues,
  compileJson,
  compileTemplate,
  type JsonTemplate,
  listPlaceholderPaths,
  renderObject,
  renderValue,
  type TextTemplate,
} from '../../engine/expressions/index.ts'
import { Failure } from '../../foundation/base/index.ts'
import { type DotPath, isJsonNumber, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { ParentRef } from '../runs/run.ts'
import type { ListingRequest } from './page-source.ts'
import { isUnifiedName, type SyncResource } from './resource.ts'

/** A sync, compiled: what runs, below what, with its templates tokenised. */
export interface SyncPlan {
  /** In the user's order; a node's `index` is its place here. */
  readonly nodes: readonly SyncNode[]
  /** Nodes by depth: wave 0 depends on nothing, wave n on nodes of wave n - 1. */
  readonly levels: readonly (readonly SyncNode[])[]
}

/** One node with the nodes that run per record of it. */
export interface SyncNode {
  readonly index: number
  readonly resource: string
  readonly method: string
  readonly id: TextTemplate | undefined
  readonly query: JsonTemplate
  readonly loopOn: string | undefined
  readonly children: readonly SyncNode[]
  /** Whether the records go to the destination: unified resources always, others when `persist` says so. */
  readonly isDelivered: boolean
  /** Paths below the root `resources` that its own templates read. */
  readonly parentPaths: readonly DotPath[]
}

/**
 * Compiles nodes that `checkResources` has nothing against.
 *
 * @throws Failure RESOURCES_INVALID when some depend on each other in a circle, DEFINITION_INVALID for a broken template
 */
export function compileSyncPlan(resources: readonly SyncResource[]): SyncPlan {
  const parents = resources.map((resource) => parentIndex(resources, resource))
  const nodes: SyncNode[] = []
  const compile = (resource: SyncResource, index: number): SyncNode => {
    const children = resources.flatMap((child, at) => (parents[at] === index ? [compile(child, at)] : []))
    const node = compileNode(resource, index, children)
    nodes.push(node)
    return node
  }
  const roots = resources.flatMap((resource, at) => (parents[at] === undefined ? [compile(resource, at)] : []))
  if (nodes.length < resources.length)
    throw new Failure('RESOURCES_INVALID', 'some resources depend on each other in a circle')
  return { nodes: nodes.sort((one, other) => one.index - other.index), levels: levelsFrom(roots) }
}

/** The place of the node that `depends_on` names: the first of that resource. */
export function parentIndex(resources: readonly SyncResource[], { depends_on }: SyncResource): number | undefined {
  const index = depends_on === undefined ? -1 : resources.findIndex(({ resource }) => resource === depends_on)
  return index === -1 ? undefined : index
}

/** The steps by which placeholders reach records of a resource: `{{resources.crm.contacts.id}}` for `crm/contacts`. */
export function recordSteps(resource: string): readonly string[] {
  return resource.split(/[./]/)
}

/** The rest of a path below `resources` that leads into records of the resource, `undefined` when it leads elsewhere. */
export function pathIntoRecord(path: DotPath, resource: string): DotPath | undefined {
  const prefix = recordSteps(resource)
  return prefix.every((step, index) => path[index] === step) ? path.slice(prefix.length) : undefined
}

function compileNode(resource: SyncResource, index: number, children: readonly SyncNode[]): SyncNode {
  const paths = listPlaceholderPaths([resource.id ?? '', resource.query ?? {}])
  return {
    index,
    resource: resource.resource,
    method: resource.method,
    id: resource.id === undefined ? undefined : compileTemplate(resource.id),
    query: compileJson(resource.query ?? {}),
    loopOn: resource.loop_on,
    children,
    isDelivered: isUnifiedName(resource.resource) || resource.persist === true,
    parentPaths: paths.filter(({ root }) => root === 'resources').map(({ steps }) => steps),
  }
}

function levelsFrom(roots: readonly SyncNode[]): SyncNode[][] {
  const waves: SyncNode[][] = []
  for (let wave = [...roots]; wave.length > 0; wave = wave.flatMap(({ children }) => children)) waves.push(wave)
  return waves
}

/** Where the templates of a node look. */
export interface TemplateValues {
  readonly account: AccountValues
  /** RFC 3339, by node index; `null` for a node that reads everything. */
  readonly previousRunDates: readonly (string | null)[]
}

/** What changes on the way down a plan. */
export interface NodeScope {
  /** Inside a loop, its argument is the element, for the node and everything below it. */
  readonly args: JsonObject
  /** Records of the parents, by resource path. */
  readonly resources: JsonObject
  /** The nearest parent; absent at the root. */
  readonly parent?: ParentRef
  /** The element of the nearest loop as text; absent outside of loops. */
  readonly element?: string
}

/**
 * The call a node makes in a scope. Query entries whose placeholder has no value are left out. A unified resource that others
 * depend on has the date in its templates alone: a parent that did not change would hide changes of its children.
 *
 * @throws Failure PLACEHOLDER_UNRESOLVED when `id` has no value
 */
export function listingRequest(
  { account, previousRunDates }: TemplateValues,
  node: SyncNode,
  { args, resources }: NodeScope,
): ListingRequest {
  const previousRunDate = previousRunDates[node.index] ?? undefined
  const scope = { account, call: { args, resources, previousRunDate } }
  const isDated = !isUnifiedName(node.resource) || node.children.length === 0
  return {
    resource: node.resource,
    method: node.method,
    ...(node.id === undefined ? {} : { id: renderedId(renderValue(node.id, scope), node) }),
    query: renderObject(node.query, scope),
    args,
    resources,
    ...(previousRunDate === undefined || !isDated ? {} : { previousRunDate }),
  }
}

/** An id of 0 is one; an empty one would turn the call into another. */
function renderedId(value: Json | undefined, { resource }: SyncNode): string {
  if (isJsonNumber(value) || (typeof value === 'string' && value !== '')) return String(value)
  throw new Failure('PLACEHOLDER_UNRESOLVED', `the id of ${resource} has no value that can be an id`)
}
