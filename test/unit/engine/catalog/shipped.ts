import { findShippedDefinition, type ShippedDefinition } from '../../../../src/engine/catalog/definitions.ts'

/** The shipped definition of that name; fails when there is none. */
export function shipped(name: string): ShippedDefinition {
  const definition = findShippedDefinition(name)
  if (definition === undefined) throw new Error(`no shipped definition ${name}`)
  return definition
}
