import { createHash } from 'node:crypto'
import { canonicalJson, type DotPath, getAtPath, isJsonNumber, type Json } from '../base/index.ts'

/** Where records keep their identifier unless their method says otherwise. */
export const DEFAULT_ID_PATH: DotPath = ['id']

/** Longer identifiers do not fit the index of a store. */
const KEY_LENGTH_MAX = 512

/** What tells records of one resource apart: the identifier, a number as the text it came as, or the whole record when it has none. */
export function identityOf(record: Json, idPath: DotPath): string {
  const id = getAtPath(record, idPath)
  return typeof id === 'string' || isJsonNumber(id) ? String(id) : JSON.stringify(record)
}

/**
 * Under what a store keeps a record: its identifier, or `sha256:<hex>` of the record when it has none, whatever the order
 * of its keys. An identifier that a database cannot hold as a key is hashed too.
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
