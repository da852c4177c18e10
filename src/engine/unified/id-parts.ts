import { isJsonNumber, type Json } from '../../foundation/json/index.ts'

/** Between the parts of a composite id: `octo:hello:7`. */
const SEPARATOR = ':'

/**
 * What is wrong with an id that must have parts, such as `must have 2 parts …`; absent when nothing is.
 *
 * @param count of the parts; absent: any id will do
 */
export function idPartsProblem(count: number | undefined, id: Json | undefined): string | undefined {
  if (count === undefined || (typeof id !== 'string' && !isJsonNumber(id ?? null))) return undefined
  const parts = String(id).split(SEPARATOR)
  if (parts.length === count && parts.every((part) => part.trim() !== '')) return undefined
  return `must be an id of ${count} parts with colons between them, as this integration's records have`
}
