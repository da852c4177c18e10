import {
  type Db,
  execute,
  type IdPage,
  newestFirst,
  nextVersion,
  queryOne,
  type Tx,
  whereVersion,
} from '../../../foundation/database/index.ts'

/** Where a call takes place: a team, and one of its environments. */
export interface EnvironmentScope {
  readonly teamId: string
  readonly environmentId: string
}

/** How the connect page presents an environment; texts are empty where nothing was given. */
export interface EnvironmentBranding {
  readonly displayName: string
  readonly logoUrl: string
  /** `#rrggbb` */
  readonly accentColor: string
}

/** What a caller may set; `undefined` keeps a value, or leaves it empty at the creation. */
export type BrandingChange = { readonly [Name in keyof EnvironmentBranding]?: string | undefined }

/** What a PATCH may set; `undefined` keeps a value. */
export type EnvironmentChange = BrandingChange & {
  readonly name: string | undefined
  readonly allowAccessTokens: boolean | undefined
}

/** An environment as it is stored. */
export interface EnvironmentRecord extends EnvironmentBranding {
  readonly id: string
  readonly teamId: string
  readonly name: string
  /** Whether tokens and keys of third parties may be issued. */
  readonly allowAccessTokens: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** The unique constraint on (team, name). */
export const ENVIRONMENT_NAME_CONSTRAINT = 'environment_team_id_name_key'

const COLUMNS = [
  'id',
  'team_id',
  'name',
  'branding_display_name as display_name',
  'branding_logo_url as logo_url',
  'branding_accent_color as accent_color',
  'allow_access_tokens',
  'created_at',
  'updated_at',
  'version',
]

function brandingColumns({ displayName, logoUrl, accentColor }: BrandingChange): Readonly<Record<string, string>> {
  return {
    ...(displayName === undefined ? {} : { branding_display_name: displayName }),
    ...(logoUrl === undefined ? {} : { branding_logo_url: logoUrl }),
    ...(accentColor === undefined ? {} : { branding_accent_color: accentColor }),
  }
}

/** Stores an environment; `undefined` when the team has one of that name. */
export async function insertEnvironment(
  tx: Db,
  id: string,
  teamId: string,
  name: string,
  branding: BrandingChange = {},
  allowAccessTokens = false,
): Promise<EnvironmentRecord | undefined> {
  const [environment] = await tx('environment')
    .insert({ id, team_id: teamId, name, allow_access_tokens: allowAccessTokens, ...brandingColumns(branding) })
    .onConflict(tx.raw('(team_id, name) where deleted_at is null'))
    .ignore()
    .returning(COLUMNS)
  return environment
}

/** The team of an environment, also of one whose deletion goes on. Uses the primary key. */
export async function findTeamOfEnvironment(tx: Db, id: string): Promise<string | undefined> {
  const sql = 'select team_id from environment where id = :id'
  return (await queryOne<{ readonly teamId: string }>(tx, sql, { id }))?.teamId
}

/** An environment of any team: for authentication of calls, and for the operator. Index: primary key. */
export async function findEnvironment(tx: Db, id: string): Promise<EnvironmentRecord | undefined> {
  return await queryOne(
    tx,
    `select id, team_id, name, branding_display_name as display_name, branding_logo_url as logo_url,
       branding_accent_color as accent_color, allow_access_tokens, created_at, updated_at, version
     from environment where id = :id and deleted_at is null`,
    { id },
  )
}

/** Index: the unique one of (team, name). */
export async function findEnvironmentByName(
  tx: Db,
  teamId: string,
  name: string,
): Promise<EnvironmentRecord | undefined> {
  return await tx('environment').where({ team_id: teamId, name, deleted_at: null }).first(COLUMNS)
}

/** Environments of the team, newest first. Index: (team, name), then a sort: a team has few. */
export async function listEnvironments(tx: Db, teamId: string, page: IdPage): Promise<readonly EnvironmentRecord[]> {
  return await tx('environment').where({ team_id: teamId, deleted_at: null }).modify(newestFirst, page).select(COLUMNS)
}

/**
 * Changes name and branding of an environment; `undefined` when the team has no such one, or not in the version. A name in use violates
 * ENVIRONMENT_NAME_CONSTRAINT.
 */
export async function updateEnvironmentRow(
  tx: Db,
  teamId: string,
  id: string,
  change: EnvironmentChange,
  version: number | undefined,
): Promise<EnvironmentRecord | undefined> {
  const [environment] = await tx('environment')
    .where({ id, team_id: teamId, deleted_at: null })
    .modify(whereVersion, version)
    .update({
      name: change.name,
      allow_access_tokens: change.allowAccessTokens,
      ...brandingColumns(change),
      ...nextVersion(tx),
    })
    .returning(COLUMNS)
  return environment
}

/** Deletes an environment with its tokens. The foreign keys of everything else in it reject it while there is any. */
export async function deleteEnvironmentRow(tx: Db, teamId: string, id: string): Promise<void> {
  await tx('environment').where({ id, team_id: teamId }).delete()
}

/** Locks an environment that is to be deleted, against what would be created in it; returns whether the team has it in the version. */
export async function lockEnvironment(
  tx: Tx,
  teamId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const environment = tx('environment').where({ id, team_id: teamId, deleted_at: null }).modify(whereVersion, version)
  return (await environment.forUpdate().first('id')) !== undefined
}

/** Hides environments for good and deletes their tokens: from the commit on nothing finds them. Uses primary keys. */
export async function hideEnvironments(tx: Db, ids: readonly string[]): Promise<void> {
  await execute(tx, 'update environment set deleted_at = now() where id = any(:ids) and deleted_at is null', { ids })
  await execute(tx, 'delete from api_token where environment_id = any(:ids)', { ids })
}

/** Ids of the team's environments, also of those whose deletion goes on, oldest first. Uses environment_of_team. */
export async function listEnvironmentIdsOfTeam(tx: Db, teamId: string, limit?: number): Promise<readonly string[]> {
  const environments = tx('environment').where({ team_id: teamId }).orderBy('id')
  if (limit !== undefined) environments.limit(limit)
  return await environments.pluck('id')
}
