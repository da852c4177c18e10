import { isJsonObject, type Json } from './json.ts'

/** A parsed path: object keys and array indexes, in order. */
export type DotPath = readonly (string | number)[]

const STEP = /[^.[\]]+|\[(\d+)\]/g

/** Parses `data.items[0].id`; a purely numeric step (`items.0.id`) addresses an array index or a key of that name. */
export function parseDotPath(text: string): DotPath {
  return [...text.matchAll(STEP)].map(([step, index]) => (index === undefined ? step : Number(index)))
}

/** The value at the path, or `undefined` when any step is missing. Only own keys are followed. */
export function getAtPath(value: Json | undefined, path: DotPath): Json | undefined {
  let current: Json | undefined = value
  for (const step of path) {
    if (Array.isArray(current)) current = current[Number(step)]
    else if (isJsonObject(current) && Object.hasOwn(current, step)) current = current[step]
    else return undefined
  }
  return current
}
