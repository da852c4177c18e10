/**
 * The integration definitions that ship with the product, as data: one file per API, in the form that creating an
 * integration takes. Nothing here has behaviour, and no code elsewhere knows an API by name.
 */
import type { JsonObject } from '../base/index.ts'
import github from './github.json' with { type: 'json' }

/** A definition as it is installed: the body of a request that creates an integration. */
export interface ShippedDefinition {
  readonly name: string
  readonly category: string
  readonly config: JsonObject
}

/** All of them, by name. */
export const CATALOG: readonly ShippedDefinition[] = [github]

/** The definition of that name. */
export function findShippedDefinition(name: string): ShippedDefinition | undefined {
  return CATALOG.find((definition) => definition.name === name)
}

/** What people call the API: the label of its config, else its name. */
export function labelOf({ name, config }: ShippedDefinition): string {
  return typeof config.label === 'string' ? config.label : name
}
