import { READING_METHODS } from '../../engine/definitions/index.ts'
import {
  compileMapping,
  type MergedMapping,
  type ReferencedResource,
  type References,
  type UnifiedModel,
  type UnifiedResource,
} from '../../engine/unified/index.ts'
import { Failure } from '../../foundation/base/index.ts'

/** A model with the merged mappings of an integration. */
export interface ReferencedModel {
  readonly model: UnifiedModel
  /** By method. */
  methodsOf(resource: string): ReadonlyMap<string, MergedMapping>
}

/** The models of resources that are named `<model>/<resource>`. */
export function modelsOfReferences(names: readonly string[]): readonly string[] {
  return [...new Set(names.map((name) => name.split('/', 1)[0] ?? name))]
}

/**
 * The rules of referenced resources, as their own lists are mapped; names that no model has are left out.
 *
 * @param models by name; without those that do not exist
 */
export function findReferences(names: readonly string[], models: ReadonlyMap<string, ReferencedModel>): References {
  const found = new Map<string, ReferencedResource>()
  for (const name of names) {
    const [model = '', resource = ''] = name.split('/', 2)
    const source = models.get(model)
    const node = source?.model.resources.get(resource)
    if (source === undefined || node === undefined) continue
    found.set(name, { resource: node, enums: enumsOf(node, source.methodsOf(resource)) })
  }
  return found
}

/** The enumerations of the first reading method that is mapped hold for records of the resource. */
function enumsOf(resource: UnifiedResource, methods: ReadonlyMap<string, MergedMapping>): ReferencedResource['enums'] {
  for (const name of READING_METHODS) {
    const merged = methods.get(name)
    if (merged === undefined) continue
    try {
      return compileMapping(merged, resource, name).config.enums
    } catch (error) {
      // Layers that no longer fit together are a finding about that resource.
      if (!(error instanceof Failure)) throw error
    }
  }
  return undefined
}
