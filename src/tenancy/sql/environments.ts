import { type IdPage, newestFirst, nextVersion, queryOne, type Tx, whereVersion } from '../../database/index.ts'

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

/** The unique constraint on (team, name). */
export const ENVIRONMENT_NAME_CONSTRAINT = 'environment_team_id_name_key'

const COLUMNS = ['id', 'team_id as teamId', 'name', 'created_at as createdAt', 'updated_at as updatedAt', 'version']

/** Stores an environment; `undefined` when the team has one of that name. */
export async function insertEnvironment(
  tx: Tx,
  id: string,
  teamId: string,
  name: string,
): Promise<EnvironmentRecord | undefined> {
  const [environment] = await tx('environment')
    .insert({ id, team_id: teamId, name })
    .onConflict(['team_id', 'name'])
    .ignore()
    .returning(COLUMNS)
  return environment
}

/** An environment of any team: for authentication of calls, and for the operator. Index: primary key. */
export async function findEnvironment(tx: Tx, id: string): Promise<EnvironmentRecord | undefined> {
  return await queryOne(
    tx,
    `select id, team_id as "teamId", name, created_at as "createdAt", updated_at as "updatedAt", version
     from environment where id = :id`,
    { id },
  )
}

/** Index: the unique one of (team, name). */
export async function findEnvironmentByName(
  tx: Tx,
  teamId: string,
  name: string,
): Promise<EnvironmentRecord | undefined> {
  return await tx('environment').where({ team_id: teamId, name }).first(COLUMNS)
}

/** Environments of the team, newest first. Index: (team, name), then a sort: a team has few. */
export async function listEnvironments(tx: Tx, teamId: string, page: IdPage): Promise<readonly EnvironmentRecord[]> {
  return await tx('environment').where({ team_id: teamId }).modify(newestFirst, page).select(COLUMNS)
}

/**
 * Renames an environment; `undefined` when the team has no such one, or not in the version. A name in use violates
 * ENVIRONMENT_NAME_CONSTRAINT.
 */
export async function updateEnvironmentRow(
  tx: Tx,
  teamId: string,
  id: string,
  name: string,
  version: number | undefined,
): Promise<EnvironmentRecord | undefined> {
  const [environment] = await tx('environment')
    .where({ id, team_id: teamId })
    .modify(whereVersion, version)
    .update({ name, ...nextVersion(tx) })
    .returning(COLUMNS)
  return environment
}

/**
 * Deletes an environment with its tokens; returns whether the team had it in the version. The foreign keys of everything
 * else in it reject it while there is any.
 */
export async function deleteEnvironmentRow(
  tx: Tx,
  teamId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  return (await tx('environment').where({ id, team_id: teamId }).modify(whereVersion, version).delete()) > 0
}
