import { findShippedModel, SHIPPED_MODEL_NAMES } from '../../engine/catalog/index.ts'
import { checkModel } from '../../engine/unified/index.ts'
import { etagMismatch, Failure, invalidFields, newId, notFound, type Violation } from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import { deepMerge, exceedsJsonSize, type JsonObject } from '../../foundation/json/index.ts'
import {
  countModels,
  deleteMappingsOf,
  deleteModelRow,
  findModel,
  hasMappingsOf,
  insertModel,
  listStoredModels,
  lockOwner,
  type StoredModel,
  updateModelRow,
} from './sql/model.ts'

/** Models of a team at most. */
const MODELS_MAX = 50
/** Length of the config of a model as JSON, characters. */
const MODEL_CHARACTERS_MAX = 512 * 1024

/** A model as a team sees it: a shipped one, one of its own, or a shipped one that it has extended. */
export interface ModelView {
  readonly name: string
  readonly isShipped: boolean
  /** What the team stored; `undefined`: nothing. */
  readonly stored: StoredModel | undefined
  /** The whole model: `{name, label, description, $defs, resources}`. */
  readonly document: JsonObject
}

/**
 * Stores a model, or an extension of the shipped model of that name.
 *
 * @throws Failure DEFINITION_INVALID with every finding about the model that would result, NAME_TAKEN, LIMIT_REACHED
 */
export async function createModel(
  tx: Tx,
  teamId: string,
  input: { readonly name: string; readonly config: JsonObject },
): Promise<ModelView> {
  assertModelValid(input.name, input.config)
  await lockOwner(tx, 'team', teamId)
  if ((await countModels(tx, teamId)) >= MODELS_MAX)
    throw new Failure('LIMIT_REACHED', `the team has ${MODELS_MAX} unified models: delete some first`)
  const stored = await insertModel(tx, { id: newId(), teamId, ...input })
  if (stored !== undefined) return viewOf(input.name, stored)
  throw new Failure('NAME_TAKEN', `the team has stored a unified model ${input.name} already: change that one`, {
    resource: { type: 'unified_model', id: input.name },
  })
}

/** A shipped model or one of the team. @throws Failure RESOURCE_NOT_FOUND */
export async function getModel(tx: Db, teamId: string, name: string): Promise<ModelView> {
  const stored = await findModel(tx, teamId, name)
  if (stored === undefined && findShippedModel(name) === undefined) throw notFound('unified_model', name)
  return viewOf(name, stored)
}

/** At most `limit` shipped models and models of the team with names after `after`, by name. */
export async function listModels(
  tx: Db,
  teamId: string,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
): Promise<readonly ModelView[]> {
  const stored = new Map((await listStoredModels(tx, teamId)).map((model) => [model.name, model]))
  const names = [...new Set([...SHIPPED_MODEL_NAMES, ...stored.keys()])].sort()
  const wanted = after === undefined ? names : names.filter((name) => name > after)
  return wanted.slice(0, limit).map((name) => viewOf(name, stored.get(name)))
}

/** A change of a stored model. */
export interface ModelChange {
  readonly name: string
  /** A merge patch (RFC 7396) to what is stored, or with `isReplacing` the whole; absent: unchanged. */
  readonly config?: JsonObject | undefined
  readonly isReplacing: boolean
  /** The version the caller saw; absent: any version. */
  readonly version: number | undefined
}

/**
 * Changes what the team stored of a model.
 *
 * @throws Failure RESOURCE_NOT_FOUND also for a shipped model that is not extended, ETAG_MISMATCH, DEFINITION_INVALID
 */
export async function updateModel(tx: Tx, teamId: string, change: ModelChange): Promise<ModelView> {
  const { name, version } = change
  await lockOwner(tx, 'team', teamId)
  const stored = await findStored(tx, teamId, name)
  if (version !== undefined && version !== stored.version) throw etagMismatch('unified_model', name)
  if (change.config === undefined) return viewOf(name, stored)
  const config = change.isReplacing ? change.config : deepMerge(stored.config, change.config)
  assertModelValid(name, config)
  const updated = await updateModelRow(tx, teamId, name, config, version)
  if (updated === undefined) throw etagMismatch('unified_model', name)
  return viewOf(name, updated)
}

/**
 * Deletes what the team stored of a model; a shipped one is as it ships then.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH; RESOURCE_IN_USE when it is not shipped, has mappings and `force` is not set
 */
export async function deleteModel(
  tx: Tx,
  teamId: string,
  input: { readonly name: string; readonly version: number | undefined; readonly force: boolean },
): Promise<void> {
  const { name, version, force } = input
  await lockOwner(tx, 'team', teamId)
  await findStored(tx, teamId, name)
  const isLast = findShippedModel(name) === undefined
  if (isLast && !force && (await hasMappingsOf(tx, teamId, name)))
    throw new Failure('RESOURCE_IN_USE', 'the model has mappings: delete them first, or set force', {
      resource: { type: 'unified_model', id: name },
    })
  if (!(await deleteModelRow(tx, teamId, name, version))) throw etagMismatch('unified_model', name)
  if (isLast) await deleteMappingsOf(tx, teamId, name)
}

/** The problems of a model, or of an extension of the shipped model of its name. Stores nothing. */
export function checkModelConfig(name: string, config: JsonObject, prefix: string): readonly Violation[] {
  if (exceedsJsonSize(config, MODEL_CHARACTERS_MAX))
    return [{ field: prefix, description: `must be at most ${MODEL_CHARACTERS_MAX} characters of JSON`, rule: 'max' }]
  return checkModel(documentOf(name, config), prefix)
}

/** A shipped model with what is stored merged over it. */
export function documentOf(name: string, config: JsonObject): JsonObject {
  return { ...deepMerge(findShippedModel(name) ?? {}, config), name }
}

function assertModelValid(name: string, config: JsonObject): void {
  const violations = checkModelConfig(name, config, 'config')
  if (violations.length > 0) throw invalidFields(violations, 'DEFINITION_INVALID')
}

async function findStored(tx: Db, teamId: string, name: string): Promise<StoredModel> {
  const stored = await findModel(tx, teamId, name)
  if (stored !== undefined) return stored
  if (findShippedModel(name) === undefined) throw notFound('unified_model', name)
  const message = `the model ${name} ships with the product: create a model of its name to extend it`
  throw new Failure('RESOURCE_NOT_FOUND', message, { resource: { type: 'unified_model', id: name } })
}

function viewOf(name: string, stored: StoredModel | undefined): ModelView {
  const isShipped = findShippedModel(name) !== undefined
  return { name, isShipped, stored, document: documentOf(name, stored?.config ?? {}) }
}
