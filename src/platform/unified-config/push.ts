import type { MappingFinding } from '../../engine/unified/index.ts'
import { catchFailure, Failure } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import { canonicalJson, type JsonObject, toDoubles } from '../../foundation/json/index.ts'
import { checkLayer, type LayerToCheck } from './check-layer.ts'
import { ANY_METHOD } from './layers.ts'
import { createMapping, type MappingWriter, updateMapping } from './mapping.ts'
import { createModel, updateModel } from './model.ts'
import { lockMappingsOf, type StoredMapping } from './sql/mapping.ts'
import { findModel } from './sql/model.ts'

/** Times that rejected mappings are tried again: what they need may be stored after them. */
const PASSES_MAX = 5

/** A model with all that the team is to store of it. */
export interface ModelToPush {
  readonly name: string
  readonly config: JsonObject
}

type WrittenState = 'created' | 'changed' | 'unchanged'

/** What became of a model. */
interface PushedModel {
  readonly name: string
  readonly state: WrittenState
}

/** What became of a mapping. */
interface PushedMapping extends Pick<StoredMapping, 'model' | 'resource' | 'integrationName' | 'method'> {
  /** `failed`: it has errors; `kept`: it is stored in the scope and was not pushed. */
  readonly state: WrittenState | 'failed' | 'kept'
  /** Of a failed one its errors; of one that was written the warnings when all are. Paths begin with `config`. */
  readonly findings: readonly MappingFinding[]
}

/** What became of a push. */
export interface PushResult {
  readonly models: readonly PushedModel[]
  readonly mappings: readonly PushedMapping[]
}

/**
 * Stores models, then mappings of one scope; one with errors is left out. Rolled back, it has stored nothing
 * and found the same.
 *
 * @throws Failure TEAM_TOKEN_REQUIRED for models and base mappings, DEFINITION_INVALID for a model with errors, LIMIT_REACHED,
 * RESOURCE_NOT_FOUND for an account that is deleted meanwhile
 */
export async function pushMappings(
  tx: Tx,
  writer: MappingWriter,
  models: readonly ModelToPush[],
  layers: readonly LayerToCheck[],
): Promise<PushResult> {
  if (models.length > 0 && !writer.mayWriteBase)
    throw new Failure('TEAM_TOKEN_REQUIRED', 'unified models need a team token')
  const pushed: PushedModel[] = []
  for (const [at, model] of models.entries()) pushed.push(await pushModel(tx, writer.teamId, model, at))
  return { models: pushed, mappings: await pushLayers(tx, writer, layers) }
}

async function pushModel(tx: Tx, teamId: string, model: ModelToPush, at: number): Promise<PushedModel> {
  const { name } = model
  const stored = await findModel(tx, teamId, name)
  if (stored !== undefined && isSame(stored.config, model.config)) return { name, state: 'unchanged' }
  const written = await catchFailure(() =>
    stored === undefined
      ? createModel(tx, teamId, model)
      : updateModel(tx, teamId, { ...model, isReplacing: true, version: stored.version }),
  )
  if (written instanceof Failure) throw atModel(written, at)
  return { name, state: stored === undefined ? 'created' : 'changed' }
}

/** The failure with fields of the request. */
function atModel(failure: Failure, at: number): Failure {
  if (failure.reason !== 'DEFINITION_INVALID') return failure
  const violations = failure.violations.map((each) => ({ ...each, field: `models[${at}].${each.field}` }))
  const [first] = violations
  const message = first === undefined ? failure.publicMessage : `${first.field} ${first.description}`
  return new Failure('DEFINITION_INVALID', message, { violations })
}

async function pushLayers(
  tx: Tx,
  writer: MappingWriter,
  layers: readonly LayerToCheck[],
): Promise<readonly PushedMapping[]> {
  const before = await lockMappingsOf(tx, layers)
  const stored = new Map(before.map((each) => [keyOf(each), each]))
  const written: { readonly layer: LayerToCheck; readonly state: WrittenState }[] = []
  const errors = new Map<LayerToCheck, readonly MappingFinding[]>()
  // What all methods of a resource share comes before them.
  let waiting = layers.toSorted((a, b) => Number(b.method === ANY_METHOD) - Number(a.method === ANY_METHOD))
  for (let pass = 0, count = Number.POSITIVE_INFINITY; waiting.length < count && pass < PASSES_MAX; pass++) {
    count = waiting.length
    errors.clear()
    for (const layer of waiting) {
      const result = await pushLayer(tx, writer, layer, stored.get(keyOf(layer)))
      if (typeof result === 'string') written.push({ layer, state: result })
      else errors.set(layer, result)
    }
    waiting = [...errors.keys()]
  }
  const given = new Set(layers.map(keyOf))
  const results: PushedMapping[] = []
  for (const { layer, state } of written) {
    const findings = state === 'unchanged' ? [] : await checkLayer(tx, layer, 'config')
    results.push({ ...placeOf(layer), state, findings })
  }
  for (const [layer, findings] of errors) results.push({ ...placeOf(layer), state: 'failed', findings })
  for (const each of before)
    if (!given.has(keyOf(each))) results.push({ ...placeOf(each), state: 'kept', findings: [] })
  return results
}

/** @returns what became of it, or its errors */
async function pushLayer(
  tx: Tx,
  writer: MappingWriter,
  layer: LayerToCheck,
  stored: StoredMapping | undefined,
): Promise<WrittenState | readonly MappingFinding[]> {
  const { config } = layer
  if (stored !== undefined && isSame(stored.config, config)) return 'unchanged'
  const written = await catchFailure(() =>
    stored === undefined
      ? createMapping(tx, writer, layer)
      : updateMapping(tx, writer, { id: stored.id, config, isReplacing: true, version: undefined }),
  )
  if (!(written instanceof Failure)) return stored === undefined ? 'created' : 'changed'
  if (written.reason !== 'DEFINITION_INVALID') throw written
  return written.violations.map(({ field: path, rule, description: message }) => ({
    path,
    rule,
    message,
    severity: 'error',
  }))
}

function placeOf({ model, resource, integrationName, method }: Omit<PushedMapping, 'state' | 'findings'>) {
  return { model, resource, integrationName, method }
}

function keyOf(mapping: Omit<PushedMapping, 'state' | 'findings'>): string {
  return Object.values(placeOf(mapping)).join(' ')
}

/** Compared as doubles: numbers of a `google.protobuf.Struct` are. */
function isSame(a: JsonObject, b: JsonObject): boolean {
  return canonicalJson(toDoubles(a)) === canonicalJson(toDoubles(b))
}
