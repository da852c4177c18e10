import { findShippedMapping, findShippedModel } from '../../engine/catalog/index.ts'
import {
  checkMappingLayer,
  distinctFindings,
  findMappingProblems,
  listReferences,
  type MappingFinding,
  type MergedMapping,
  parseModel,
  type References,
  type UnifiedModel,
} from '../../engine/unified/index.ts'
import { suggestOneOf, type Violation } from '../../foundation/base/index.ts'
import { getAtPath, isJsonObject, type Json, type JsonObject, parseDotPath } from '../../foundation/json/index.ts'
import { ANY_METHOD, listParts, mergeMethods } from './layers.ts'
import { findReferences, modelsOfReferences, type ReferencedModel } from './references.ts'

/** A mapping file: `{model, integration, resources: {<resource>: {<method or *>: config}}}`. */
export interface MappingDocument {
  readonly document: JsonObject
  readonly model: UnifiedModel
  /** Merged mappings by resource and method. */
  readonly resources: ReadonlyMap<string, ReadonlyMap<string, MergedMapping>>
  /** Resources that its expanded references show fields of: of the file, those of other models as they ship. */
  readonly references: References
}

/** The merged methods of a mapping file, each by itself: nothing is stored over them. */
export function readMappingDocument(document: JsonObject, model: UnifiedModel): MappingDocument {
  const parts = listParts(document, [])
  const resources = new Map(
    [...model.resources.keys()].map((resource) => [resource, mergeMethods(parts, resource)] as const),
  )
  const own = { model, methodsOf: (resource: string) => resources.get(resource) ?? new Map<string, MergedMapping>() }
  const names = [...model.resources.values()].flatMap((resource) =>
    [...own.methodsOf(resource.name).values()].flatMap(({ config }) => listReferences(config, resource)),
  )
  const models = new Map([...shippedModels(modelsOfReferences(names), document), [model.name, own]])
  return { document, model, resources, references: findReferences([...new Set(names)], models) }
}

function shippedModels(names: readonly string[], { integration }: JsonObject): ReadonlyMap<string, ReferencedModel> {
  const models = new Map<string, ReferencedModel>()
  for (const name of names) {
    const shipped = findShippedModel(name)
    if (shipped === undefined) continue
    const parts = listParts(findShippedMapping(name, typeof integration === 'string' ? integration : '') ?? {}, [])
    models.set(name, { model: parseModel(shipped), methodsOf: (resource) => mergeMethods(parts, resource) })
  }
  return models
}

/**
 * What a check finds in a mapping file, with paths from its top: of each resource first the problems of its methods by
 * themselves, and when there are none, those of what they come to.
 *
 * @param definition config of the integration; absent: its methods are not known
 */
export function checkMappingDocument(
  mapping: MappingDocument,
  definition: JsonObject | undefined,
): readonly MappingFinding[] {
  const { document, model, references } = mapping
  const own = [...checkShape(document, model), ...checkLayers(document)]
  const found = [...mapping.resources].flatMap(([name, methods]) => {
    const resource = model.resources.get(name)
    const hasOwn = own.some(({ path }) => isWithin(path, `resources.${name}`))
    if (resource === undefined || hasOwn) return []
    return [...methods].flatMap(([method, merged]) => {
      const one = new Map([[method, merged]])
      const findings = findMappingProblems({ resource, methods: one, siblings: methods, definition, references }, '')
      return findings.map((finding) => locate(document, name, method, finding))
    })
  })
  // What methods share is checked with each of them.
  return [...own, ...distinctFindings(found)]
}

function isWithin(path: string, parent: string): boolean {
  return path === parent || path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`)
}

/** A finding about a merged method, with the path at which the file has the leaf: in the method, or in what all share. */
export function locate(
  document: JsonObject,
  resource: string,
  method: string,
  finding: MappingFinding,
): MappingFinding {
  const path = parseDotPath(finding.path)
  const has = (name: string) => getAtPath(document, ['resources', resource, name, ...path]) !== undefined
  const place = !has(method) && has(ANY_METHOD) ? ANY_METHOD : method
  const rest = finding.path === '' || finding.path.startsWith('[') ? finding.path : `.${finding.path}`
  return { ...finding, path: `resources.${resource}.${place}${rest}` }
}

/** What is wrong with the name of a resource that a model lacks. */
export function unknownResource({ name, resources }: UnifiedModel, resource: string): string {
  return `is not a resource of the model ${name}${suggestOneOf(resource, resources.keys())}`
}

const DOCUMENT_KEYS: readonly string[] = ['model', 'integration', 'resources']

function checkShape({ resources, ...rest }: JsonObject, model: UnifiedModel): readonly MappingFinding[] {
  const unknown = Object.keys(rest).filter((key) => !DOCUMENT_KEYS.includes(key))
  return [
    ...unknown.map((key) => errorAt(key, 'unknown_field', `is not a known setting${suggestOneOf(key, DOCUMENT_KEYS)}`)),
    ...(typeof rest.integration === 'string' ? [] : [errorAt('integration', 'required', 'must name the integration')]),
    ...(isJsonObject(resources) ? [] : [errorAt('resources', 'required', 'must be an object by resource')]),
    ...entriesOf(resources)
      .filter(([name]) => !model.resources.has(name))
      .map(([name]) => errorAt(`resources.${name}`, 'unknown_resource', unknownResource(model, name))),
  ]
}

function checkLayers({ resources }: JsonObject): readonly MappingFinding[] {
  return entriesOf(resources).flatMap(([resource, methods]) =>
    isJsonObject(methods)
      ? Object.entries(methods).flatMap(([method, config]) =>
          checkMappingLayer(config, `resources.${resource}.${method}`).map(toError),
        )
      : [errorAt(`resources.${resource}`, 'type', 'must be an object by method')],
  )
}

function toError({ field, rule, description }: Violation): MappingFinding {
  return errorAt(field, rule, description)
}

function errorAt(path: string, rule: string, message: string): MappingFinding {
  return { path, rule, severity: 'error', message }
}

function entriesOf(value: Json | undefined): readonly (readonly [string, Json])[] {
  return isJsonObject(value) ? Object.entries(value) : []
}
