/**
 * The integration definitions that ship with the product, as data: one file per API, with the body of the
 * request that creates an integration; and the unified models with the mappings to them. Nothing here has behaviour, and no code elsewhere knows an API by name.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { JsonObject } from '../../foundation/json/index.ts'

/** A shipped definition: the body of a request that creates an integration. */
export interface ShippedDefinition {
  readonly name: string
  readonly category: string
  readonly config: JsonObject
}

const EXTENSION = '.json'

/** The names of all shipped definitions, sorted: one per file. */
export const SHIPPED_NAMES: readonly string[] = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(EXTENSION))
  .map((file) => file.slice(0, -EXTENSION.length))
  .sort()

/** Reads the definition of that name. */
export function findShippedDefinition(name: string): ShippedDefinition | undefined {
  if (!SHIPPED_NAMES.includes(name)) return undefined
  return JSON.parse(readFileSync(new URL(`${name}${EXTENSION}`, import.meta.url), 'utf8')) as ShippedDefinition
}

/** Display name of the API: the label of its config, else its name. */
export function labelOf({ name, config }: ShippedDefinition): string {
  return typeof config.label === 'string' ? config.label : name
}
