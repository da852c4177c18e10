import { execute, query, queryOne, type Tx } from '../database.ts'

/** Where a call takes place: a team, and one of its environments. */
export interface EnvironmentScope {
  readonly teamId: string
  readonly environmentId: string
}

/** An environment as it is stored. */
export interface EnvironmentRecord {
  readonly id: string
  readonly teamId: string
  readonly name: string
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

const ENVIRONMENT_COLUMNS =
  'id, team_id as "teamId", name, created_at as "createdAt", updated_at as "updatedAt", version'

/** The unique constraint on (team, name). */
export const ENVIRONMENT_NAME_CONSTRAINT = 'environment_team_id_name_key'

/** Stores an environment, or `undefined` when the team has one of that name. */
export async function insertEnvironment(
  tx: Tx,
  id: string,
  teamId: string,
  name: string,
): Promise<EnvironmentRecord | undefined> {
  return await queryOne(
    tx,
    `insert into environment (id, team_id, name) values (?, ?, ?)
     on conflict (team_id, name) do nothing returning ${ENVIRONMENT_COLUMNS}`,
    [id, teamId, name],
  )
}

/** An environment of any team, for the gate and for administration by the operator. Rides on the primary key. */
export async function findEnvironment(tx: Tx, id: string): Promise<EnvironmentRecord | undefined> {
  return await queryOne(tx, `select ${ENVIRONMENT_COLUMNS} from environment where id = ?`, [id])
}

/** Rides on the unique index of (team, name). */
export async function findEnvironmentByName(
  tx: Tx,
  teamId: string,
  name: string,
): Promise<EnvironmentRecord | undefined> {
  return await queryOne(tx, `select ${ENVIRONMENT_COLUMNS} from environment where team_id = ? and name = ?`, [
    teamId,
    name,
  ])
}

/** Environments of the team below `before` (all when undefined), newest first. A team has few. */
export async function selectEnvironments(
  tx: Tx,
  teamId: string,
  before: string | undefined,
  limit: number,
): Promise<readonly EnvironmentRecord[]> {
  return await query(
    tx,
    `select ${ENVIRONMENT_COLUMNS} from environment where team_id = ? and (?::uuid is null or id < ?) order by id desc limit ?`,
    [teamId, before ?? null, before ?? null, limit],
  )
}

/**
 * Renames an environment; `undefined` when the team has no such one or its version is not the given one.
 *
 * A taken name breaks ENVIRONMENT_NAME_CONSTRAINT.
 */
export async function updateEnvironmentRow(
  tx: Tx,
  teamId: string,
  id: string,
  name: string | undefined,
  version: number | undefined,
): Promise<EnvironmentRecord | undefined> {
  return await queryOne(
    tx,
    `update environment set name = coalesce(?, name), updated_at = now(), version = version + 1
     where id = ? and team_id = ? and version = coalesce(?, version) returning ${ENVIRONMENT_COLUMNS}`,
    [name ?? null, id, teamId, version ?? null],
  )
}

/**
 * Deletes an environment with its tokens; returns whether the team had it in the given version.
 *
 * The foreign keys of everything else in it refuse while there is any.
 */
export async function deleteEnvironmentRow(
  tx: Tx,
  teamId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const sql = 'delete from environment where id = ? and team_id = ? and version = coalesce(?, version)'
  return (await execute(tx, sql, [id, teamId, version ?? null])) > 0
}
