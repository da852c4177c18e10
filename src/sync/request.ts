import { Failure, isJsonNumber, type Json, type JsonObject } from '../base/index.ts'
import { type AccountValues, renderObject, renderValue } from '../expression/index.ts'
import type { SyncNode } from './plan.ts'
import type { ListingRequest } from './source.ts'

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
}

/**
 * The call a node makes in a scope. Query entries whose placeholder has no value are left out.
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
  return {
    resource: node.resource,
    method: node.method,
    ...(node.id === undefined ? {} : { id: renderedId(renderValue(node.id, scope), node) }),
    query: renderObject(node.query, scope),
    args,
    resources,
    ...(previousRunDate === undefined ? {} : { previousRunDate }),
  }
}

/** An id of 0 is one; an empty one would turn the call into another. */
function renderedId(value: Json | undefined, { resource }: SyncNode): string {
  if (isJsonNumber(value) || (typeof value === 'string' && value !== '')) return String(value)
  throw new Failure('PLACEHOLDER_UNRESOLVED', `the id of ${resource} has no value that can be an id`)
}
