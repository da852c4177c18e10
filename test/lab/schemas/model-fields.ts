import { findShippedModel, SHIPPED_MODEL_NAMES } from '../../../src/engine/catalog/index.ts'
import type { JsonObject } from '../../../src/foundation/json/index.ts'

interface ModelDocument {
  readonly $defs: Readonly<Record<string, { readonly properties: JsonObject }>>
  readonly resources: Readonly<Record<string, { readonly schema: { readonly properties: JsonObject } }>>
}

const documents = SHIPPED_MODEL_NAMES.map((name) => [name, findShippedModel(name) as unknown as ModelDocument] as const)
const shared = new Map(documents.flatMap(([, { $defs }]) => Object.entries($defs)))
shared.delete('reference')

/** The fields of all resources, then those of the types that they share: `$defs/email`. A reference is an id with a name. */
export const MODEL_FIELDS: readonly { readonly owner: string; readonly field: string }[] = [
  ...documents.flatMap(([model, { resources }]) =>
    Object.entries(resources).map(([name, { schema }]) => [`${model}/${name}`, schema.properties] as const),
  ),
  ...[...shared].map(([name, { properties }]) => [`$defs/${name}`, properties] as const),
].flatMap(([owner, properties]) => Object.keys(properties).map((field) => ({ owner, field })))
