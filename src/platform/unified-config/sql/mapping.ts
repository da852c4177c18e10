import {
  type Db,
  deleteBatchOfEnvironment,
  jsonb,
  newestFirst,
  nextVersion,
  type Tx,
  whereVersion,
} from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'

/** A mapping of a customer as it is stored: one layer of one method, or of all methods, of a unified resource. */
export interface StoredMapping {
  readonly id: string
  readonly teamId: string
  /** Null: of the team, for all its environments. */
  readonly environmentId: string | null
  /** Null: for all accounts. */
  readonly integratedAccountId: string | null
  readonly model: string
  readonly resource: string
  readonly integrationName: string
  /** `*`: of all methods. */
  readonly method: string
  readonly config: JsonObject
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** Whose rows are visible: the team's, and those of one environment. */
export interface MappingOwner {
  readonly teamId: string
  /** Absent: only those of the team. */
  readonly environmentId: string | undefined
}

/** Which mappings to list; what is undefined does not restrict. */
export interface MappingFilter {
  readonly scope?: MappingScopeName | undefined
  readonly integratedAccountId?: string | undefined
  readonly model?: string | undefined
  readonly resource?: string | undefined
  readonly integrationName?: string | undefined
  readonly method?: string | undefined
}

/** The layers that are stored. */
export type MappingScopeName = 'base' | 'environment' | 'account'

const COLUMNS = [
  'id',
  'team_id',
  'environment_id',
  'integrated_account_id',
  'model',
  'resource',
  'integration_name',
  'method',
  'config',
  'created_at',
  'updated_at',
  'version',
]

/** The foreign key of the account. */
export const MAPPING_ACCOUNT_CONSTRAINT = 'unified_mapping_environment_id_integrated_account_id_fkey'

/** Stores a mapping, or `undefined` when its scope has one of that method. */
export async function insertMapping(
  tx: Db,
  mapping: Omit<StoredMapping, 'createdAt' | 'updatedAt' | 'version'>,
): Promise<StoredMapping | undefined> {
  const [inserted] = await tx('unified_mapping')
    .insert({
      id: mapping.id,
      team_id: mapping.teamId,
      environment_id: mapping.environmentId,
      integrated_account_id: mapping.integratedAccountId,
      model: mapping.model,
      resource: mapping.resource,
      integration_name: mapping.integrationName,
      method: mapping.method,
      config: jsonb(mapping.config),
    })
    .onConflict()
    .ignore()
    .returning(COLUMNS)
  return inserted
}

/** Uses the primary key. */
export async function findMapping(tx: Db, owner: MappingOwner, id: string): Promise<StoredMapping | undefined> {
  return await visible(tx, owner).where({ id }).first(COLUMNS)
}

/** Like `findMapping`, and locks the row until the transaction ends, so that a merge loses no update. */
export async function lockMapping(tx: Tx, owner: MappingOwner, id: string): Promise<StoredMapping | undefined> {
  return await visible(tx, owner).where({ id }).forUpdate().first(COLUMNS)
}

/** The id of the mapping that has the place of another. Uses the unique index of the scope. */
export async function findMappingIdAt(
  tx: Tx,
  place: Omit<StoredMapping, 'id' | 'config' | 'createdAt' | 'updatedAt' | 'version'>,
): Promise<string | undefined> {
  const [id] = await tx('unified_mapping')
    .where({
      team_id: place.teamId,
      environment_id: place.environmentId,
      integrated_account_id: place.integratedAccountId,
      model: place.model,
      resource: place.resource,
      integration_name: place.integrationName,
      method: place.method,
    })
    .pluck('id')
  return id
}

/** Where mappings hold, as requests say it: what is absent is null in rows. */
interface MappingPlaceRef extends Pick<StoredMapping, 'teamId' | 'model' | 'integrationName'> {
  readonly environmentId?: string | undefined
  readonly integratedAccountId?: string | undefined
}

/**
 * The mappings of one scope for the models and integrations of the places, oldest first, locked until the transaction ends. Uses an
 * index of the scope.
 */
export async function lockMappingsOf(tx: Tx, places: readonly MappingPlaceRef[]): Promise<readonly StoredMapping[]> {
  const [first] = places
  if (first === undefined) return []
  const { teamId, environmentId = null, integratedAccountId = null } = first
  const pairs = places.map(({ model, integrationName }) => [model, integrationName])
  return await tx('unified_mapping')
    .where({ team_id: teamId, environment_id: environmentId, integrated_account_id: integratedAccountId })
    .whereIn(['model', 'integration_name'], pairs)
    .forUpdate()
    .orderBy('id')
    .select(COLUMNS)
}

/** A page of the visible mappings, newest first. Uses unified_mapping_list. */
export async function selectMappings(
  tx: Db,
  owner: MappingOwner,
  filter: MappingFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly StoredMapping[]> {
  const mappings = visible(tx, owner)
  const equal = {
    integrated_account_id: filter.integratedAccountId,
    model: filter.model,
    resource: filter.resource,
    integration_name: filter.integrationName,
    method: filter.method,
  }
  for (const [column, value] of Object.entries(equal)) if (value !== undefined) mappings.where(column, value)
  if (filter.scope === 'base') mappings.whereNull('environment_id')
  if (filter.scope === 'environment') mappings.whereNotNull('environment_id').whereNull('integrated_account_id')
  if (filter.scope === 'account') mappings.whereNotNull('integrated_account_id')
  return await mappings.modify(newestFirst, page).select(COLUMNS)
}

/** Replaces the config; `undefined` when there is no such mapping or its version is not the given one. */
export async function updateMappingRow(
  tx: Db,
  owner: MappingOwner,
  id: string,
  config: JsonObject,
  version: number | undefined,
): Promise<StoredMapping | undefined> {
  const [updated] = await visible(tx, owner)
    .where({ id })
    .modify(whereVersion, version)
    .update({ config: jsonb(config), ...nextVersion(tx) })
    .returning(COLUMNS)
  return updated
}

/** Returns whether there was such a mapping in the given version. */
export async function deleteMappingRow(
  tx: Db,
  owner: MappingOwner,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  return (await visible(tx, owner).where({ id }).modify(whereVersion, version).delete()) > 0
}

/** How many mappings a scope has, and how long their configs are together, characters. */
export interface MappingUsage {
  readonly count: number
  readonly characters: number
  /** Of the others of the same model and integration for the same accounts. */
  readonly charactersOfModel: number
}

/** What the team's base has without an environment, else what the environment and its accounts have. Uses an index of the scope. */
export async function measureMappings(
  tx: Db,
  place: Pick<StoredMapping, 'teamId' | 'environmentId' | 'integratedAccountId' | 'model' | 'integrationName'> & {
    readonly id?: string
  },
): Promise<MappingUsage> {
  const { id = null, teamId, environmentId, integratedAccountId, model, integrationName } = place
  const mappings = tx('unified_mapping')
  if (environmentId === null) mappings.where({ team_id: teamId }).whereNull('environment_id')
  else mappings.where({ environment_id: environmentId })
  const [usage] = await mappings.select<MappingUsage[]>(
    tx.raw('count(*)::int as count'),
    tx.raw('coalesce(sum(length(config::text)), 0)::int as characters'),
    tx.raw(
      `coalesce(sum(length(config::text)) filter (where model = :model and integration_name = :integrationName
         and integrated_account_id is not distinct from :integratedAccountId
         and id is distinct from :id), 0)::int as characters_of_model`,
      { model, integrationName, integratedAccountId, id },
    ),
  )
  return usage ?? { count: 0, characters: 0, charactersOfModel: 0 }
}

/** Deletes the mappings of an environment that is deleted, those of its accounts included. */
export async function deleteMappingsOfEnvironment(tx: Db, environmentId: string): Promise<boolean> {
  return await deleteBatchOfEnvironment(tx, ['unified_mapping'], environmentId)
}

function visible(tx: Db, { teamId, environmentId }: MappingOwner) {
  return tx('unified_mapping')
    .where({ team_id: teamId })
    .where((either) => {
      either.whereNull('environment_id')
      if (environmentId !== undefined) either.orWhere({ environment_id: environmentId })
    })
}
