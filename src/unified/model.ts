import type { JsonObject, Violation } from '../base/index.ts'
import type { SchemaNode } from './schema-node.ts'

/** A unified model: resources of one domain (crm, ticketing) in one shape over many APIs. */
export interface UnifiedModel {
  readonly name: string
  readonly label: string
  readonly description: string
  readonly resources: ReadonlyMap<string, UnifiedResource>
}

/** A resource of a model. */
export interface UnifiedResource {
  readonly model: string
  readonly name: string
  readonly description: string
  /** Unified methods that it may have: list, get, create, update, delete, or others. */
  readonly methods: readonly string[]
  /** JSON Schema of its records: with `$ref` resolved and the fields that every record has (`id`, `remote_id`, …). */
  readonly schema: ResourceSchema
  /** The same, compiled. */
  readonly node: SchemaNode
}

/** A JSON Schema of type object. */
export type ResourceSchema = JsonObject & {
  readonly properties: { readonly [field: string]: JsonObject }
}

/** The model of a checked document. @throws Failure DEFINITION_INVALID */
export function parseModel(_document: JsonObject): UnifiedModel {
  throw new Error('not implemented')
}

/** The problems of a model document. @param prefix of the fields: `config` */
export function checkModel(_document: JsonObject, _prefix: string): Violation[] {
  throw new Error('not implemented')
}
