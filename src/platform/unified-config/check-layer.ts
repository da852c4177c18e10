import {
  findShippedDefinition,
  findShippedMapping,
  SHIPPED_MODEL_NAMES,
  SHIPPED_NAMES,
} from '../../engine/catalog/index.ts'
import {
  checkMappingLayer,
  compileMapping,
  distinctFindings,
  findMappingProblems,
  listReferences,
  type MappingFinding,
  type MappingPlan,
  type MergedMapping,
  parseModel,
  type References,
  type UnifiedResource,
} from '../../engine/unified/index.ts'
import { Failure, suggest, suggestOneOf, type Violation } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { findDefinitionByName } from '../integrations/definition-by-name.ts'
import { listVisibleNames } from '../integrations/sql/integrations.ts'
import { ANY_METHOD, listParts, mergeMethods } from './layers.ts'
import { unknownResource } from './mapping-document.ts'
import { documentOf } from './model.ts'
import { findReferences, modelsOfReferences, type ReferencedModel } from './references.ts'
import { type MappingPlace, type StoredLayer, selectLayers } from './sql/effective.ts'

/** A layer to be checked: where it holds, and what it would set. */
export interface LayerToCheck extends MappingPlace {
  readonly teamId: string
  readonly model: string
  readonly resource: string
  readonly method: string
  readonly config: JsonObject
}

/**
 * Checks a layer of a mapping alone, then merged with all lower layers. Paths are those of the config.
 *
 * @param prefix of the paths: `config`, or empty
 */
export async function checkLayer(tx: Db, layer: LayerToCheck, prefix: string): Promise<readonly MappingFinding[]> {
  const layers = await selectLayers(tx, layer, layer.model)
  const resource = findResource(layer, layers)
  if (!('schema' in resource)) return [resource]
  const definition = await findDefinition(tx, layer)
  const place = [
    ...(definition === undefined ? await checkIntegrationName(tx, layer) : []),
    ...checkMethodName(layer, resource),
  ]
  const own = checkMappingLayer(layer.config, prefix).map(toFinding)
  if (own.length > 0) return [...place, ...own]
  const methods = mergeMethods(listParts(shippedOf(layer), replaced(layers, layer)), layer.resource)
  const isShared = layer.method === ANY_METHOD
  const checked = isShared ? methods : new Map([...methods].filter(([method]) => method === layer.method))
  // An unknown method without a target is taken for a slip: what it is near belongs to the errors.
  if (checked.size === 0) return [...place.map(asError), withoutTarget(isShared, prefix)]
  const references = await readReferences(tx, layer, resource, [...checked.values()])
  const findings = findMappingProblems(
    { resource, methods: checked, siblings: methods, definition, references },
    prefix,
  )
  return [...place, ...(isShared ? distinctFindings(findings) : findings)]
}

/** The rules of the resources that mappings expand references to, as they are stored. */
async function readReferences(
  tx: Db,
  place: LayerToCheck,
  resource: UnifiedResource,
  mappings: readonly MergedMapping[],
): Promise<References> {
  const names = [...new Set(mappings.flatMap(({ config }) => listReferences(config, resource)))]
  const models = new Map<string, ReferencedModel>()
  for (const name of modelsOfReferences(names)) {
    const layers = await selectLayers(tx, place, name)
    const document = documentOf(name, layers.find(({ kind }) => kind === 'model')?.config ?? {})
    if (document.resources === undefined) continue
    const parts = listParts(findShippedMapping(name, place.integrationName) ?? {}, layers)
    models.set(name, { model: parseModel(document), methodsOf: (each) => mergeMethods(parts, each) })
  }
  return findReferences(names, models)
}

/** What all methods share may be stored before the first method is; until then it has no effect. */
function withoutTarget(isShared: boolean, path: string): MappingFinding {
  const rule = 'target.missing'
  if (!isShared) return errorAt(path, rule, 'must have resource and method: no layer below says what is called')
  return { path, rule, severity: 'warning', message: 'has no effect: no layer says what list or get call' }
}

/** The finding that an integration without a definition has a name that the team cannot know either. */
async function checkIntegrationName(tx: Db, layer: LayerToCheck): Promise<readonly MappingFinding[]> {
  const { teamId, integrationName } = layer
  const known = [...(await listVisibleNames(tx, teamId, integrationName)), ...SHIPPED_NAMES]
  if (known.includes(integrationName)) return []
  const message = `names ${integrationName}, which is no integration of the catalog, the team or the environment${suggest(integrationName, known)}`
  return [errorAt('integration_name', 'integration.unknown', message)]
}

/** Methods beyond those of the model are allowed, and may be a slip. */
function checkMethodName({ method, model }: LayerToCheck, resource: UnifiedResource): readonly MappingFinding[] {
  const { name, methods } = resource
  if (method === ANY_METHOD || methods.includes(method)) return []
  const message = `${method} is not a method of ${model}/${name}${suggestOneOf(method, methods)}`
  return [{ path: 'method', rule: 'method.not_in_model', severity: 'hint', message }]
}

function asError(finding: MappingFinding): MappingFinding {
  return { ...finding, severity: 'error' }
}

/** The config of the integration that a mapping is for: as installed, as the team owns it, else as shipped. */
export async function findDefinition(
  tx: Db,
  place: MappingPlace & { readonly teamId: string },
): Promise<JsonObject | undefined> {
  const known = await findDefinitionByName(tx, place, place.integrationName)
  return known ?? findShippedDefinition(place.integrationName)?.config
}

/** A drafted method: the mapping as it would be with the draft, and what a check finds. */
export interface DraftedMethod {
  readonly merged: MergedMapping
  readonly plan: MappingPlan
  readonly findings: readonly MappingFinding[]
}

/** Compiles a method as it would be with a layer that is not stored. @throws Failure DEFINITION_INVALID with every error */
export async function draftMethod(tx: Db, layer: LayerToCheck): Promise<DraftedMethod> {
  const findings = await checkLayer(tx, layer, 'config')
  assertNoErrors(findings)
  const layers = await selectLayers(tx, layer, layer.model)
  const resource = findResource(layer, layers)
  const methods = mergeMethods(listParts(shippedOf(layer), replaced(layers, layer)), layer.resource)
  const merged = methods.get(layer.method)
  if (!('schema' in resource) || merged === undefined) throw new Error('a checked draft has no mapping')
  const references = await readReferences(tx, layer, resource, [merged])
  return { merged, plan: compileMapping(merged, resource, layer.method, references), findings }
}

/** The resource of the model, or the finding that there is none. */
function findResource(layer: LayerToCheck, layers: readonly StoredLayer[]): UnifiedResource | MappingFinding {
  const stored = layers.find(({ kind }) => kind === 'model')?.config
  const document = documentOf(layer.model, stored ?? {})
  if (document.resources === undefined)
    return errorAt(
      'model',
      'unknown_model',
      `there is no model ${layer.model}${suggestOneOf(layer.model, SHIPPED_MODEL_NAMES)}`,
    )
  const model = parseModel(document)
  const resource = model.resources.get(layer.resource)
  if (resource !== undefined) return resource
  return errorAt('resource', 'unknown_resource', unknownResource(model, layer.resource))
}

function shippedOf({ model, integrationName }: LayerToCheck): JsonObject {
  return findShippedMapping(model, integrationName) ?? {}
}

/** The layers up to the one that is checked, with its config instead of what is stored. */
function replaced(layers: readonly StoredLayer[], layer: LayerToCheck): readonly StoredLayer[] {
  const kind = kindOf(layer)
  const { resource, method, config } = layer
  const kept = layers.filter((each) => each.kind !== kind || each.resource !== resource || each.method !== method)
  return [...kept, { kind, id: '', version: 0, resource, method, config }]
}

function kindOf({ environmentId, integratedAccountId }: MappingPlace): StoredLayer['kind'] {
  if (environmentId === undefined) return 'base'
  return integratedAccountId === undefined ? 'environment' : 'account'
}

function errorAt(path: string, rule: string, message: string): MappingFinding {
  return { path, rule, severity: 'error', message }
}

function toFinding({ field, rule, description }: Violation): MappingFinding {
  return errorAt(field, rule, description)
}

/** @throws Failure DEFINITION_INVALID with every error among the findings, unless there are none */
export function assertNoErrors(findings: readonly MappingFinding[]): void {
  const violations = findings
    .filter(({ severity }) => severity === 'error')
    .map(({ path, rule, message }) => ({ field: path, rule, description: message }))
  const [first] = violations
  if (first === undefined) return
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : ''
  throw new Failure('DEFINITION_INVALID', `${first.field} ${first.description}${more}`, { violations })
}
