import { createHash } from 'node:crypto'
import { canonicalJson, type DotPath, getAtPath, isJsonNumber, type Json } from '../../foundation/json/index.ts'

/** Default path of the identifier of a record. */
export const DEFAULT_ID_PATH: DotPath = ['id']

/** Length limit of a key in the index of a store. */
const KEY_LENGTH_MAX = 512

/** The identity of a record within its resource: the identifier, a number as its source text, or the whole record without one. */
export function identityOf(record: Json, idPath: DotPath): string {
  return identifierOf(record, idPath) ?? JSON.stringify(record)
}

/** The identifier of a record, a number as its source text; `undefined` without one. */
export function identifierOf(record: Json, idPath: DotPath): string | undefined {
  const id = getAtPath(record, idPath)
  return typeof id === 'string' || isJsonNumber(id) ? String(id) : undefined
}

/**
 * The key of a record in a store: its identifier, or `sha256:<hex>` of its canonical JSON without one. An identifier that a
 * database cannot hold as a key is hashed too.
 */
export function recordKeyOf(record: Json, idPath: DotPath): string {
  const id = getAtPath(record, idPath)
  if (isJsonNumber(id)) return String(id)
  if (typeof id !== 'string') return sha256Key(canonicalJson(record))
  const isKey = id.length <= KEY_LENGTH_MAX && !id.includes('\u0000') && id.isWellFormed()
  return isKey ? id : sha256Key(id)
}

function sha256Key(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}
