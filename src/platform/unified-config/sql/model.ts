import {
  type Db,
  execute,
  jsonb,
  nextVersion,
  query,
  queryOne,
  type Tx,
  whereVersion,
} from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'

/** A model of a team as it is stored. */
export interface StoredModel {
  readonly id: string
  readonly teamId: string
  readonly name: string
  /** `{label, description, resources}`; of an extension of a shipped model what differs. */
  readonly config: JsonObject
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

const COLUMNS = ['id', 'team_id', 'name', 'config', 'created_at', 'updated_at', 'version']

/** Stores a model, or `undefined` when the team has one of that name. */
export async function insertModel(
  tx: Db,
  model: Pick<StoredModel, 'id' | 'teamId' | 'name' | 'config'>,
): Promise<StoredModel | undefined> {
  const { id, teamId, name, config } = model
  const [inserted] = await tx('unified_model')
    .insert({ id, team_id: teamId, name, config: jsonb(config) })
    .onConflict(['team_id', 'name'])
    .ignore()
    .returning(COLUMNS)
  return inserted
}

/** Uses unified_model_name. */
export async function findModel(tx: Db, teamId: string, name: string): Promise<StoredModel | undefined> {
  return await tx('unified_model').where({ team_id: teamId, name }).first(COLUMNS)
}

/** All models of a team, by name: there are MODELS_MAX at most. Uses unified_model_name. */
export async function listStoredModels(tx: Db, teamId: string): Promise<readonly StoredModel[]> {
  return await tx('unified_model').where({ team_id: teamId }).orderBy('name').select(COLUMNS)
}

/**
 * Locks the owner of models or mappings until the transaction ends, so that a count of them stays true. Does not wait for
 * inserts of rows that refer to it.
 */
export async function lockOwner(tx: Tx, table: 'team' | 'environment', id: string): Promise<void> {
  await query(tx, `select from ${table} where id = :id for no key update`, { id })
}

export async function countModels(tx: Tx, teamId: string): Promise<number> {
  const sql = 'select count(*)::int as count from unified_model where team_id = :teamId'
  return (await queryOne<{ readonly count: number }>(tx, sql, { teamId }))?.count ?? 0
}

/** Replaces the config; `undefined` when the team has no such model or its version is not the given one. */
export async function updateModelRow(
  tx: Db,
  teamId: string,
  name: string,
  config: JsonObject,
  version: number | undefined,
): Promise<StoredModel | undefined> {
  const [updated] = await tx('unified_model')
    .where({ team_id: teamId, name })
    .modify(whereVersion, version)
    .update({ config: jsonb(config), ...nextVersion(tx) })
    .returning(COLUMNS)
  return updated
}

/** Returns whether the team had the model in the given version. */
export async function deleteModelRow(
  tx: Db,
  teamId: string,
  name: string,
  version: number | undefined,
): Promise<boolean> {
  return (await tx('unified_model').where({ team_id: teamId, name }).modify(whereVersion, version).delete()) > 0
}

/** Whether the team has a mapping of the model in any scope. Uses unified_mapping_list. */
export async function hasMappingsOf(tx: Db, teamId: string, model: string): Promise<boolean> {
  const sql = 'select from unified_mapping where team_id = :teamId and model = :model limit 1'
  return (await queryOne(tx, sql, { teamId, model })) !== undefined
}

/** Deletes the team's mappings of a model, in all scopes. Uses unified_mapping_list. */
export async function deleteMappingsOf(tx: Db, teamId: string, model: string): Promise<void> {
  await execute(tx, 'delete from unified_mapping where team_id = :teamId and model = :model', { teamId, model })
}
