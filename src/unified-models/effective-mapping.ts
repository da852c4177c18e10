import { LRUCache } from 'lru-cache'
import { type Clock, Failure, readThrough, suggest, TtlCache } from '../base/index.ts'
import { findShippedMapping, findShippedModel, SHIPPED_MODEL_NAMES } from '../catalog/index.ts'
import type { Tx } from '../database/index.ts'
import {
  compileMapping,
  type MappingPlan,
  type MergedMapping,
  parseModel,
  type UnifiedModel,
  type UnifiedResource,
} from '../unified/index.ts'
import { describeResource, type ModelDescription } from './describe.ts'
import { listParts, mergeMethods } from './layers.ts'
import { listMappedModels } from './mapped-models.ts'
import { documentOf } from './model.ts'
import { type MappedAccount, type StoredLayer, selectLayers } from './sql/effective.ts'

/** Cache size in accounts, and how long a change of another process stays unseen, milliseconds. */
const ACCOUNTS_CACHED_MAX = 5_000
const CACHE_TTL_MS = 500
/** Cache size in models with their mappings; one takes up to a few hundred kilobytes once it is compiled. */
const MODELS_CACHED_MAX = 500

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
   * The mapping of one method. Costs one statement at most: what is stored is cached for half a second, what is compiled by
   * its versions.
   *
   * @throws Failure UNIFIED_NOT_MAPPED naming what there is instead; DEFINITION_INVALID when the layers no longer fit together
   */
  find(tx: Tx, account: MappedAccount, ref: UnifiedMethodRef): Promise<EffectiveMapping>
  /**
   * All mapped methods of a model, by resource in the order of the model; those whose layers no longer fit are left out.
   *
   * @throws Failure UNIFIED_NOT_MAPPED for an unknown model
   */
  list(tx: Tx, account: MappedAccount, model: string): Promise<readonly EffectiveMapping[]>
  /**
   * What a model offers for an account, mapped or not. Costs what `find` does.
   *
   * @param resource absent: all resources
   * @throws Failure UNIFIED_NOT_MAPPED for an unknown model or resource
   */
  describe(tx: Tx, account: MappedAccount, model: string, resource?: string | undefined): Promise<ModelDescription>
  /** Makes the next call of this process see what was committed before. */
  invalidate(): void
}

/**
 * Reads and compiles mappings. `tx` must not be a transaction that has changed a model or a mapping: what it reads is cached
 * for others.
 */
export function createUnifiedMappings({ clock }: { readonly clock: Pick<Clock, 'monotonicMs'> }): UnifiedMappings {
  const options = { max: ACCOUNTS_CACHED_MAX, ttlMs: CACHE_TTL_MS, clock }
  const byVersions = new LRUCache<string, MappedModel>({ max: MODELS_CACHED_MAX })
  let byAccount = new TtlCache<Promise<MappedModel | undefined>>(options)

  async function read(tx: Tx, account: MappedAccount, model: string): Promise<MappedModel | undefined> {
    const layers = await selectLayers(tx, account, model)
    const versions = layers.map(({ id, version }) => `${id}@${version}`)
    const key = [model, account.integrationName, ...versions].join(' ')
    const known = byVersions.get(key) ?? mapModel(model, account.integrationName, layers)
    if (known !== undefined) byVersions.set(key, known)
    return known
  }

  async function modelOf(tx: Tx, account: MappedAccount, model: string): Promise<MappedModel> {
    const { environmentId, integratedAccountId = '', integrationName } = account
    const key = [environmentId, integratedAccountId, integrationName, model].join(' ')
    const found = await readThrough(byAccount, key, () => read(tx, account, model))
    if (found !== undefined) return found
    const names = [...new Set([...SHIPPED_MODEL_NAMES, ...(await listMappedModels(tx, account))])].sort()
    const message = `there is no unified model ${model}${suggest(model, names)}: there are ${names.join(', ')}`
    throw notMapped(message, { model })
  }

  return {
    async find(tx, account, ref) {
      const mapped = await modelOf(tx, account, ref.model)
      const merged = mapped.methods.get(ref.resource)?.get(ref.method)
      if (merged !== undefined) return compileMethod(mapped, ref.resource, ref.method, merged)
      throw noMapping(mapped, ref, await listMappedModels(tx, account))
    },
    list: async (tx, account, model) => compilable(await modelOf(tx, account, model)),
    describe: async (tx, account, model, resource) => describeModel(await modelOf(tx, account, model), resource),
    invalidate() {
      byAccount = new TtlCache(options)
    },
  }
}

/** A model with the mappings of one integration, each compiled when it is first used. */
interface MappedModel {
  readonly model: UnifiedModel
  readonly integrationName: string
  /** Merged mappings by resource and method. */
  readonly methods: ReadonlyMap<string, ReadonlyMap<string, MergedMapping>>
  readonly compiled: Map<MergedMapping, EffectiveMapping>
}

function mapModel(name: string, integrationName: string, layers: readonly StoredLayer[]): MappedModel | undefined {
  const shipped = findShippedModel(name)
  const stored = layers.find(({ kind }) => kind === 'model')
  if (shipped === undefined && stored === undefined) return undefined
  const model = parseModel(documentOf(name, stored?.config ?? {}))
  const parts = listParts(findShippedMapping(name, integrationName) ?? {}, layers)
  const methods = new Map([...model.resources.keys()].map((resource) => [resource, mergeMethods(parts, resource)]))
  return { model, integrationName, methods, compiled: new Map() }
}

/** That a method is not mapped: names the methods of the resource that are, else its resources, else the models. */
function noMapping(mapped: MappedModel, ref: UnifiedMethodRef, models: readonly string[]): Failure {
  const { model, integrationName } = mapped
  const { resource, method } = ref
  if (!model.resources.has(resource)) return noResource(model, resource)
  const metadata = { ...ref, integration_name: integrationName }
  const what = `${model.name}/${resource} has no mapping for ${integrationName}`
  const methods = [...(mapped.methods.get(resource)?.keys() ?? [])]
  if (methods.length > 0) return notMapped(`${what} with the method ${method}${oneOf(methods)}`, metadata)
  const resources = [...mapped.methods].filter(([, { size }]) => size > 0).map(([name]) => `${model.name}/${name}`)
  const others = resources.length > 0 ? resources : models.filter((name) => name !== model.name)
  const mappedOnes = others.length === 0 ? 'none is mapped' : `mapped are ${others.join(', ')}`
  return notMapped(`${what}: ${mappedOnes}`, metadata)
}

function compileMethod(
  { model, compiled }: MappedModel,
  resourceName: string,
  method: string,
  merged: MergedMapping,
): EffectiveMapping {
  const known = compiled.get(merged)
  if (known !== undefined) return known
  const resource = model.resources.get(resourceName)
  if (resource === undefined) throw new Error(`the model ${model.name} has no resource ${resourceName}`)
  const mapping = { model, resource, method, merged, plan: compileMapping(merged, resource, method) }
  compiled.set(merged, mapping)
  return mapping
}

function compilable(mapped: MappedModel): readonly EffectiveMapping[] {
  const mappings: EffectiveMapping[] = []
  for (const [resource, methods] of mapped.methods)
    for (const [method, merged] of methods) {
      try {
        mappings.push(compileMethod(mapped, resource, method, merged))
      } catch (error) {
        if (!(error instanceof Failure)) throw error
      }
    }
  return mappings
}

function describeModel({ model, integrationName, methods }: MappedModel, only: string | undefined): ModelDescription {
  const resources = [...model.resources.values()].filter(({ name }) => only === undefined || name === only)
  if (only !== undefined && resources.length === 0) throw noResource(model, only)
  return {
    model,
    integrationName,
    resources: resources.map((resource) => describeResource(resource, methods.get(resource.name) ?? new Map())),
  }
}

function noResource({ name, resources }: UnifiedModel, resource: string): Failure {
  return notMapped(`the model ${name} has no resource ${resource}${oneOf(resources.keys())}`, { model: name, resource })
}

function notMapped(message: string, metadata: Readonly<Record<string, string>>): Failure {
  return new Failure('UNIFIED_NOT_MAPPED', message, { metadata })
}

/** What there is instead. */
function oneOf(names: Iterable<string>): string {
  return `: it has ${[...names].join(', ')}`
}
