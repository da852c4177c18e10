import { type DotPath, getAtPath, isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import type { PageSource } from './page-source.ts'
import { pathIntoRecord, type SyncNode } from './plan.ts'

/** Parents waiting for their children at once; what a checkpoint holds per level. */
const BATCH_PARENTS_MAX = 100
/** Their JSON text in UTF-16 units; a single larger parent travels alone. */
const BATCH_LENGTH_MAX = 32 * 1024

/** Cuts a record down to what descendants of its node read. */
export type Projection = (record: Json) => Json

/** The projection for records of the node; the identity when somebody reads whole records, or it is not known who reads what. */
export function parentProjection(node: SyncNode, parentPathsOf: PageSource['parentPaths']): Projection {
  const paths: DotPath[] = []
  for (const child of descendantsOf(node)) {
    const ofDefinition = parentPathsOf?.(child.resource, child.method)
    if (ofDefinition === undefined) return (record) => record
    for (const path of [...child.parentPaths, ...ofDefinition]) {
      const field = pathIntoRecord(path, node.resource)
      if (field?.length === 0) return (record) => record
      if (field !== undefined) paths.push(field)
    }
  }
  // Longest first: a path that another one begins with is then replaced by the larger value.
  paths.sort((one, other) => other.length - one.length)
  return (record) => (isJsonObject(record) ? pick(record, paths) : record)
}

/** Splits parents into windows; only the window being worked on is ever in a checkpoint. */
export function splitParents(records: readonly Json[], project: Projection): readonly (readonly Json[])[] {
  const windows: Json[][] = []
  let window: Json[] = []
  let length = 0
  for (const record of records) {
    const parent = project(record)
    const added = JSON.stringify(parent).length
    if (window.length > 0 && (window.length === BATCH_PARENTS_MAX || length + added > BATCH_LENGTH_MAX)) {
      windows.push(window)
      window = []
      length = 0
    }
    window.push(parent)
    length += added
  }
  if (window.length > 0) windows.push(window)
  return windows
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

/** A step into a list becomes a key of that number, which a lookup by path does not tell apart. */
function withValueAt(object: JsonObject, [head = '', ...rest]: DotPath, value: Json): JsonObject {
  const inner = object[head]
  return { ...object, [head]: rest.length === 0 ? value : withValueAt(isJsonObject(inner) ? inner : {}, rest, value) }
}
