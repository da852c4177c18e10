import { type DotPath, getAtPath, type Json } from '../base/index.ts'

/** Where records keep their identifier unless their method says otherwise. */
export const DEFAULT_ID_PATH: DotPath = ['id']

/** What tells records of one resource apart: the identifier, or the whole record when it has none. */
export function identityOf(record: Json, idPath: DotPath): string {
  const id = getAtPath(record, idPath)
  return typeof id === 'string' || typeof id === 'number' ? String(id) : JSON.stringify(record)
}
