import { createHash } from 'node:crypto'
import { canonicalJson, type JsonObject } from '../../foundation/json/index.ts'
import type { CompletedStatus } from '../../foundation/queue/index.ts'
import type { ResourceStats, RunDestination } from './run.ts'

/** What of a run decides which incremental state it has. */
export interface IncrementalScope {
  readonly resources: readonly JsonObject[]
  readonly args: JsonObject
  readonly destination: RunDestination
}

/**
 * The key of the incremental state of each resource: a hash of everything that decides which records a run reads of it and
 * where it delivers them. That is the resource as the job defines it, those it depends on, the arguments (elements of
 * `loop_on` are among them) and the destination. If one of these differs, the records were never read or never delivered
 * there, and the next run reads all of them.
 */
export function resourceKeys({ resources, args, destination }: IncrementalScope): readonly string[] {
  const parentOf = parentIndexes(resources)
  return resources.map((_, index) => {
    const read = dependencyChain(index, parentOf).map((at) => withoutLookBack(resources[at] ?? {}))
    return createHash('sha256')
      .update(canonicalJson({ read, args, destination: { ...destination } }))
      .digest('base64url')
  })
}

/** Which records are read does not depend on how many of them are read twice. */
function withoutLookBack({ look_back_seconds: _, ...resource }: JsonObject): JsonObject {
  return resource
}

/** `{{previous_run_date}}` of a resource. @param date of its last complete run; null: it is read whole */
export function dateToReadFrom({ look_back_seconds: seconds = 0 }: JsonObject, date: Date | null): Date | null {
  return date === null ? null : new Date(date.getTime() - Number(seconds) * 1_000)
}

/**
 * Whether each resource was read and delivered completely, so that its next run may read from the start of this one: it is
 * complete, and so is everything above it (children of missing parents were never requested) and below it (a parent that is
 * not listed again would not have its missing children requested either).
 *
 * @param stats as reported; absent stats, or those of another resource, are not complete
 */
export function areFullyDelivered(
  resources: readonly JsonObject[],
  stats: readonly ResourceStats[],
): readonly boolean[] {
  const parentOf = parentIndexes(resources)
  const isComplete = resources.map(
    (resource, index) => isStatsOf(resource, stats[index]) && stats[index]?.complete === true,
  )
  const isMovable = [...isComplete]
  for (const index of resources.keys()) {
    const chain = dependencyChain(index, parentOf)
    if (!isComplete[index]) for (const at of chain) isMovable[at] = false
    else if (chain.some((at) => !isComplete[at])) isMovable[index] = false
  }
  return isMovable
}

/** How a run with these final counters ends. A resource without counters is not complete. */
export function completedStatusOf(resources: readonly JsonObject[], stats: readonly ResourceStats[]): CompletedStatus {
  const isWhole = resources.every(
    (resource, index) => isStatsOf(resource, stats[index]) && stats[index]?.complete === true,
  )
  return isWhole ? 'completed' : 'partially_completed'
}

/** Whether the counters are those of the resource. */
export function isStatsOf(
  { resource, method }: JsonObject,
  stats: Pick<ResourceStats, 'resource' | 'method'> | undefined,
): boolean {
  return stats !== undefined && stats.resource === resource && stats.method === method
}

/** By index, the index of the resource that `depends_on` names: the first of that name. */
function parentIndexes(resources: readonly JsonObject[]): readonly (number | undefined)[] {
  const firstOf = new Map<unknown, number>()
  for (const [index, { resource }] of resources.entries()) if (!firstOf.has(resource)) firstOf.set(resource, index)
  return resources.map(({ depends_on }) => (depends_on === undefined ? undefined : firstOf.get(depends_on)))
}

/** The resource and those it depends on, nearest first; ends where a chain comes back to itself. */
function dependencyChain(index: number, parentOf: readonly (number | undefined)[]): readonly number[] {
  const chain = [index]
  for (let at = parentOf[index]; at !== undefined && !chain.includes(at); at = parentOf[at]) chain.push(at)
  return chain
}
