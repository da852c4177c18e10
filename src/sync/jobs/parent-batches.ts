import { type DotPath, getAtPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { PageSource } from './page-source.ts'
import { pathIntoRecord, type SyncNode } from './plan.ts'
import { DEFAULT_ID_PATH } from './record-id.ts'

/** Parents per batch, which is what a checkpoint holds per level. */
const BATCH_PARENTS_MAX = 100
/** JSON text of a batch in UTF-16 units; a larger parent is a batch of its own. */
const BATCH_LENGTH_MAX = 32 * 1024

/** Projects a record to the fields that descendants of its node read. */
export type Projection = (record: Json) => Json

/**
 * The projection for records of the node: their identifier, for errors, and what descendants read. The identity when a
 * descendant reads whole records, or the fields are unknown.
 */
export function parentProjection(
  node: SyncNode,
  parentPathsOf: PageSource['parentPaths'],
  idPath = DEFAULT_ID_PATH,
): Projection {
  const paths: DotPath[] = [idPath]
  for (const child of descendantsOf(node)) {
    const ofDefinition = parentPathsOf?.(child.resource, child.method)
    if (ofDefinition === undefined) return (record) => record
    for (const path of [...child.parentPaths, ...ofDefinition]) {
      const field = pathIntoRecord(path, node.resource)
      if (field?.length === 0) return (record) => record
      if (field !== undefined) paths.push(field)
    }
  }
  // Longest first: a prefix of a longer path then replaces it with the larger value.
  paths.sort((one, other) => other.length - one.length)
  return (record) => (isJsonObject(record) ? pick(record, paths) : record)
}

/** Splits parents into batches; a checkpoint holds the current batch alone. */
export function splitParents(records: readonly Json[], project: Projection): readonly (readonly Json[])[] {
  const batches: Json[][] = []
  let batch: Json[] = []
  let length = 0
  for (const record of records) {
    const parent = project(record)
    const added = JSON.stringify(parent).length
    if (batch.length > 0 && (batch.length === BATCH_PARENTS_MAX || length + added > BATCH_LENGTH_MAX)) {
      batches.push(batch)
      batch = []
      length = 0
    }
    batch.push(parent)
    length += added
  }
  if (batch.length > 0) batches.push(batch)
  return batches
}

function descendantsOf(node: SyncNode): SyncNode[] {
  return node.children.flatMap((child) => [child, ...descendantsOf(child)])
}

function pick(record: JsonObject, paths: readonly DotPath[]): JsonObject {
  let picked: JsonObject = {}
  for (const path of paths) {
    const value = getAtPath(record, path)
    if (value !== undefined) picked = withValueAt(picked, path, value)
  }
  return picked
}

/** An index of a list becomes a key, which a look-up by path treats alike. */
function withValueAt(object: JsonObject, [head = '', ...rest]: DotPath, value: Json): JsonObject {
  const inner = object[head]
  return { ...object, [head]: rest.length === 0 ? value : withValueAt(isJsonObject(inner) ? inner : {}, rest, value) }
}
