import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { findShippedMapping, findShippedModel, SHIPPED_MODEL_NAMES } from '../../engine/catalog/index.ts'
import {
  compileMapping,
  type MappingPlan,
  type MergedMapping,
  parseModel,
  type UnifiedModel,
  type UnifiedResource,
} from '../../engine/unified/index.ts'
import { type Clock, Failure, readThrough, suggestOneOf, TtlCache } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import { TimeSlice } from '../../foundation/fair/index.ts'
import type { Json } from '../../foundation/json/index.ts'
import { describeResource, type ModelDescription, type ResourceDescription } from './describe.ts'
import { listMethods, listParts, mergeMethod, mergeMethods, type ResourcePart } from './layers.ts'
import { listMappedModels } from './mapped-models.ts'
import { documentOf } from './model.ts'
import { findReferences, modelsOfReferences, type ReferencedModel } from './references.ts'
import { type MappedAccount, type StoredLayer, selectLayers } from './sql/effective.ts'

/** Cache size in accounts, and how long a change of another process stays unseen, milliseconds. */
const ACCOUNTS_CACHED_MAX = 5_000
const CACHE_TTL_MS = 500
/** Cache size of models with the layers of their mappings, and of compiled methods, characters of JSON. */
const MODEL_CHARACTERS_CACHED_MAX = 32 * 1024 * 1024
const METHOD_CHARACTERS_CACHED_MAX = 8 * 1024 * 1024

/** A method of a unified resource. */
export interface UnifiedMethodRef {
  readonly model: string
  readonly resource: string
  readonly method: string
}

/** The mapping that calls of a unified method run on: all layers merged, compiled. */
export interface EffectiveMapping {
  readonly model: UnifiedModel
  readonly resource: UnifiedResource
  readonly method: string
  readonly merged: MergedMapping
  readonly plan: MappingPlan
}

/** The effective mappings of accounts. */
export interface UnifiedMappings {
  /**
   * The mapping of one method. Costs one statement at most, and one for each other model that it expands references to: what is
   * stored is cached for half a second, what is compiled by its versions.
   *
   * @throws Failure UNIFIED_NOT_MAPPED naming what there is instead; DEFINITION_INVALID when the layers no longer fit together
   */
  find(tx: Db, account: MappedAccount, ref: UnifiedMethodRef): Promise<EffectiveMapping>
  /**
   * All mapped methods of a model, by resource in the order of the model; those whose layers no longer fit are left out.
   *
   * @throws Failure UNIFIED_NOT_MAPPED for an unknown model
   */
  list(tx: Db, account: MappedAccount, model: string): Promise<readonly EffectiveMapping[]>
  /**
   * What a model offers for an account, mapped or not. Costs what `find` does.
   *
   * @param resource absent: all resources
   * @throws Failure UNIFIED_NOT_MAPPED for an unknown model or resource
   */
  describe(tx: Db, account: MappedAccount, model: string, resource?: string | undefined): Promise<ModelDescription>
  /** Makes the next call of this process see what was committed before. */
  invalidate(): void
}

/**
 * Reads and compiles mappings. `tx` must not be a transaction that has changed a model or a mapping: what it reads is cached
 * for others.
 */
export function createUnifiedMappings({ clock }: { readonly clock: Pick<Clock, 'monotonicMs'> }): UnifiedMappings {
  const options = { max: ACCOUNTS_CACHED_MAX, ttlMs: CACHE_TTL_MS, clock }
  const cache = createModelCache()
  let byAccount = new TtlCache<Promise<string | undefined>>(options)

  async function read(tx: Db, account: MappedAccount, model: string): Promise<MappedModel | undefined> {
    const layers = await selectLayers(tx, account, model)
    const key = hash([model, account.integrationName, ...layers.map(({ id }) => id)].join(' '))
    return cache.newest(key, revisionOf(layers), () => mapModel(model, account.integrationName, layers, key))
  }

  /** What is cached by account is the key alone: the models are bounded by their size. */
  async function findModel(tx: Db, account: MappedAccount, model: string): Promise<MappedModel | undefined> {
    const { environmentId, integratedAccountId = '', integrationName } = account
    const accountKey = [environmentId, integratedAccountId, integrationName, model].join(' ')
    const key = await readThrough(byAccount, accountKey, async () => (await read(tx, account, model))?.key)
    return key === undefined ? undefined : (cache.models.get(key) ?? (await read(tx, account, model)))
  }

  async function modelOf(tx: Db, account: MappedAccount, model: string): Promise<MappedModel> {
    const found = await findModel(tx, account, model)
    if (found !== undefined) return found
    const names = [...SHIPPED_MODEL_NAMES, ...(await listMappedModels(tx, account))]
    const message = `there is no unified model ${model}${suggestOneOf(model, names)}`
    throw notMapped(message, { model })
  }

  /** The mapping with the rules of the resources that its expanded references show. */
  async function withReferences(tx: Db, account: MappedAccount, mapping: EffectiveMapping): Promise<EffectiveMapping> {
    const { references } = mapping.plan
    if (references.length === 0) return mapping
    const models = new Map<string, MappedModel>()
    for (const name of modelsOfReferences(references)) {
      const found = await findModel(tx, account, name)
      if (found !== undefined) models.set(name, found)
    }
    return completeMapping(cache, mapping, models)
  }

  return {
    async find(tx, account, ref) {
      const mapped = await modelOf(tx, account, ref.model)
      const resource = mapped.model.resources.get(ref.resource)
      const found = resource === undefined ? undefined : compileMethod(cache, mapped, resource, ref.method)
      if (found !== undefined) return await withReferences(tx, account, found)
      throw noMapping(mapped, ref, await listMappedModels(tx, account))
    },
    list: async (tx, account, model) => await compilable(cache, await modelOf(tx, account, model)),
    describe: async (tx, account, model, resource) => await describeModel(await modelOf(tx, account, model), resource),
    invalidate() {
      byAccount = new TtlCache(options)
    },
  }
}

/** A model with the layers of one integration; a method is merged and compiled when it is first used. */
interface MappedModel {
  /** Of the model, the integration and the ids of the stored layers. */
  readonly key: string
  /** Grows with each change of a stored layer. */
  readonly revision: number
  readonly model: UnifiedModel
  readonly integrationName: string
  readonly parts: ReadonlyMap<string, readonly ResourcePart[]>
  /** Characters of JSON. */
  readonly size: number
}

interface ModelCache {
  readonly models: LRUCache<string, MappedModel>
  readonly methods: LRUCache<string, EffectiveMapping>
  /** Of a method that expands references, the last one compiled with the rules of what they refer to, and the models of those. */
  readonly completed: WeakMap<EffectiveMapping, CompletedMapping>
  /** The model of a key at a revision or a later one; an earlier one is dropped with its methods. */
  newest(key: string, revision: number, make: () => MappedModel | undefined): MappedModel | undefined
}

interface CompletedMapping {
  readonly mapping: EffectiveMapping
  readonly models: ReadonlyMap<string, MappedModel>
}

function createModelCache(): ModelCache {
  const methods = new LRUCache<string, EffectiveMapping>({
    maxSize: METHOD_CHARACTERS_CACHED_MAX,
    sizeCalculation: ({ merged, resource }) => charactersOf(merged.config) + charactersOf(resource.schema as Json),
  })
  const models = new LRUCache<string, MappedModel>({
    maxSize: MODEL_CHARACTERS_CACHED_MAX,
    sizeCalculation: ({ size }) => size,
    dispose(mapped) {
      for (const [resource, parts] of mapped.parts)
        for (const { method } of parts) methods.delete(methodKey(mapped, resource, method))
    },
  })
  return {
    models,
    methods,
    completed: new WeakMap(),
    newest(key, revision, make) {
      const known = models.get(key)
      if (known !== undefined && known.revision >= revision) return known
      const mapped = make()
      if (mapped !== undefined) models.set(key, mapped)
      return mapped
    },
  }
}

/** Versions only grow, so that of two reads of the same rows the later has the greater sum. */
function revisionOf(layers: readonly StoredLayer[]): number {
  return layers.reduce((sum, { version }) => sum + version, 0)
}

function methodKey({ key, revision }: MappedModel, resource: string, method: string): string {
  return [key, revision, resource, method].join(' ')
}

function mapModel(
  name: string,
  integrationName: string,
  layers: readonly StoredLayer[],
  key: string,
): MappedModel | undefined {
  const shipped = findShippedModel(name)
  const stored = layers.find(({ kind }) => kind === 'model')
  if (shipped === undefined && stored === undefined) return undefined
  const document = documentOf(name, stored?.config ?? {})
  const parts = listParts(findShippedMapping(name, integrationName) ?? {}, layers)
  const size = layers.reduce((sum, { config }) => sum + charactersOf(config), charactersOf(document as Json))
  return {
    key,
    revision: revisionOf(layers),
    model: parseModel(document),
    integrationName,
    parts: Map.groupBy(parts, ({ resource }) => resource),
    size,
  }
}

function charactersOf(value: Json): number {
  return JSON.stringify(value).length
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

function methodsOf({ parts }: MappedModel, resource: string): ReadonlyMap<string, MergedMapping> {
  return mergeMethods(parts.get(resource) ?? [], resource)
}

/** That a method is not mapped: names the methods of the resource that are, else its resources, else the models. */
function noMapping(mapped: MappedModel, ref: UnifiedMethodRef, models: readonly string[]): Failure {
  const { model, integrationName } = mapped
  const { resource, method } = ref
  if (!model.resources.has(resource)) return noResource(model, resource)
  const metadata = { ...ref, integration_name: integrationName }
  const what = `${model.name}/${resource} has no mapping for ${integrationName}`
  const methods = [...methodsOf(mapped, resource).keys()]
  if (methods.length > 0)
    return notMapped(`${what} with the method ${method}${suggestOneOf(method, methods)}`, metadata)
  const resources = [...model.resources.keys()].filter((name) => isMapped(mapped, name))
  const others =
    resources.length > 0
      ? resources.map((name) => `${model.name}/${name}`)
      : models.filter((name) => name !== model.name)
  const mappedOnes = others.length === 0 ? 'none is mapped' : `mapped are ${others.join(', ')}`
  return notMapped(`${what}: ${mappedOnes}`, metadata)
}

function isMapped({ parts }: MappedModel, resource: string): boolean {
  const ofResource = parts.get(resource) ?? []
  return listMethods(ofResource).some((method) => mergeMethod(ofResource, method) !== undefined)
}

/** The method, merged and compiled; `undefined` when no layer says what it calls. */
function compileMethod(
  { methods }: ModelCache,
  mapped: MappedModel,
  resource: UnifiedResource,
  method: string,
): EffectiveMapping | undefined {
  const key = methodKey(mapped, resource.name, method)
  const known = methods.get(key)
  if (known !== undefined) return known
  const merged = mergeMethod(mapped.parts.get(resource.name) ?? [], method)
  if (merged === undefined) return undefined
  const { model } = mapped
  const mapping = { model, resource, method, merged, plan: compileMapping(merged, resource, method) }
  methods.set(key, mapping)
  return mapping
}

/** The mapping compiled with the rules of what it refers to. @param models of its references, by name */
function completeMapping(
  { completed }: ModelCache,
  mapping: EffectiveMapping,
  models: ReadonlyMap<string, MappedModel>,
): EffectiveMapping {
  const known = completed.get(mapping)
  const isSame =
    known?.models.size === models.size && [...models].every(([name, each]) => known.models.get(name) === each)
  if (known !== undefined && isSame) return known.mapping
  const { merged, resource, method, plan } = mapping
  const sources = new Map([...models].map(([name, each]) => [name, sourceOf(each)] as const))
  const references = findReferences(plan.references, sources)
  const made = { ...mapping, plan: compileMapping(merged, resource, method, references) }
  completed.set(mapping, { mapping: made, models })
  return made
}

function sourceOf(mapped: MappedModel): ReferencedModel {
  return { model: mapped.model, methodsOf: (resource) => methodsOf(mapped, resource) }
}

async function compilable(cache: ModelCache, mapped: MappedModel): Promise<readonly EffectiveMapping[]> {
  const slice = new TimeSlice()
  const mappings: EffectiveMapping[] = []
  for (const resource of mapped.model.resources.values())
    for (const method of listMethods(mapped.parts.get(resource.name) ?? [])) {
      try {
        const mapping = compileMethod(cache, mapped, resource, method)
        if (mapping !== undefined) mappings.push(mapping)
      } catch (error) {
        if (!(error instanceof Failure)) throw error
      }
      if (slice.isOver) await slice.pause()
    }
  return mappings
}

async function describeModel(mapped: MappedModel, only: string | undefined): Promise<ModelDescription> {
  const { model, integrationName } = mapped
  const resources = [...model.resources.values()].filter(({ name }) => only === undefined || name === only)
  if (only !== undefined && resources.length === 0) throw noResource(model, only)
  const slice = new TimeSlice()
  const described: ResourceDescription[] = []
  for (const resource of resources) {
    described.push(describeResource(resource, methodsOf(mapped, resource.name)))
    if (slice.isOver) await slice.pause()
  }
  return { model, integrationName, resources: described }
}

function noResource({ name, resources }: UnifiedModel, resource: string): Failure {
  return notMapped(`the model ${name} has no resource ${resource}${suggestOneOf(resource, resources.keys())}`, {
    model: name,
    resource,
  })
}

function notMapped(message: string, metadata: Readonly<Record<string, string>>): Failure {
  return new Failure('UNIFIED_NOT_MAPPED', message, { metadata })
}
