import {
  type Db,
  type IdPage,
  newestFirst,
  nextVersion,
  queryOne,
  type Tx,
  whereVersion,
} from '../../../foundation/database/index.ts'

/** A team as it is stored. `tosLink` is empty when there is none. */
export interface TeamRecord {
  readonly id: string
  readonly name: string
  readonly domain: string
  readonly logo: string
  readonly isVerified: boolean
  readonly isWhiteLabel: boolean
  readonly tosLink: string
  readonly allowImpersonation: boolean
  /** The team of the first start, of which there is exactly one. */
  readonly isOperator: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** What a team decides about itself. */
export interface TeamFields {
  readonly name: string
  readonly domain: string
  readonly logo: string
  readonly isWhiteLabel: boolean
  readonly tosLink: string
  readonly allowImpersonation: boolean
}

/** Changes to a team; undefined keeps a field. */
export type TeamChange = { readonly [Field in keyof TeamFields]?: TeamFields[Field] | undefined }

const COLUMNS = [
  'id',
  'name',
  'domain',
  'logo',
  'is_verified',
  'is_white_label',
  'tos_link',
  'allow_impersonation',
  'is_operator',
  'created_at',
  'updated_at',
  'version',
]

/** Stores a team that is not the operator's. */
export async function insertTeam(tx: Db, id: string, fields: TeamFields): Promise<TeamRecord> {
  const [team] = await tx('team')
    .insert({ id, ...toColumns(fields) })
    .returning(COLUMNS)
  return team
}

/**
 * Stores the operator's team unless there is one. Of simultaneous callers one gets `true`; the others wait until its
 * transaction ends. Index: team_operator, unique.
 */
export async function insertOperatorTeam(tx: Db, id: string, name: string): Promise<boolean> {
  const inserted = await tx('team')
    .insert({ id, name, is_operator: true })
    .onConflict(tx.raw('(is_operator) where is_operator'))
    .ignore()
    .returning('id')
  return inserted.length > 0
}

/** Index: team_operator. */
export async function findOperatorTeam(tx: Db): Promise<TeamRecord | undefined> {
  return await tx('team').whereRaw('is_operator').first(COLUMNS)
}

/** Index: primary key. */
export async function findTeam(tx: Db, id: string): Promise<TeamRecord | undefined> {
  return await tx('team').where({ id, deleted_at: null }).first(COLUMNS)
}

/** The teams of the ids that exist, in no order. Index: primary key. */
export async function findTeams(tx: Db, ids: readonly string[]): Promise<readonly TeamRecord[]> {
  return await tx('team')
    .whereRaw('id = any(?) and deleted_at is null', [[...ids]])
    .select(COLUMNS)
}

/** Teams, newest first. Index: primary key, backwards. */
export async function listAllTeams(tx: Db, page: IdPage): Promise<readonly TeamRecord[]> {
  return await tx('team').where({ deleted_at: null }).modify(newestFirst, page).select(COLUMNS)
}

/** Changes the given fields; `undefined` when there is no such team, or not in the version. */
export async function updateTeamRow(
  tx: Db,
  id: string,
  change: TeamChange,
  version: number | undefined,
): Promise<TeamRecord | undefined> {
  const [team] = await tx('team')
    .where({ id, deleted_at: null })
    .modify(whereVersion, version)
    .update({ ...toColumns(change), ...nextVersion(tx) })
    .returning(COLUMNS)
  return team
}

/** Marks a team as verified or not; `undefined` when there is no such team. The same mark changes nothing. Uses the primary key. */
export async function setTeamVerified(tx: Db, id: string, isVerified: boolean): Promise<TeamRecord | undefined> {
  await tx('team')
    .where({ id, is_verified: !isVerified })
    .update({ is_verified: isVerified, ...nextVersion(tx) })
  return await findTeam(tx, id)
}

/** Address of the terms of service of the team that an environment belongs to; empty without any. Uses primary keys. */
export async function findTermsOfEnvironment(tx: Db, environmentId: string): Promise<string> {
  const found = await queryOne<{ readonly tosLink: string }>(
    tx,
    'select tos_link from environment join team on team.id = team_id where environment.id = :environmentId',
    { environmentId },
  )
  return found?.tosLink ?? ''
}

/**
 * Deletes a team with its tokens and the grants it received. The foreign keys of environments and integrations reject it while
 * there are any.
 */
export async function deleteTeamRow(tx: Db, id: string): Promise<void> {
  await tx('team').where({ id, is_operator: false }).delete()
}

function toColumns(fields: TeamChange): object {
  const { name, domain, logo, isWhiteLabel, tosLink, allowImpersonation } = fields
  return {
    name,
    domain,
    logo,
    is_white_label: isWhiteLabel,
    tos_link: tosLink,
    allow_impersonation: allowImpersonation,
  }
}

/** Locks a team that is to be deleted, against what would be created in it; returns whether it is there in the version. */
export async function lockTeam(tx: Tx, id: string, version: number | undefined): Promise<boolean> {
  const team = tx('team').where({ id, deleted_at: null }).modify(whereVersion, version)
  return (await team.forUpdate().first('id')) !== undefined
}

/** Hides a team for good and deletes its tokens: from the commit on nothing finds it. Uses api_token_team. */
export async function hideTeam(tx: Db, id: string): Promise<void> {
  await tx('team').where({ id, deleted_at: null }).update({ deleted_at: tx.fn.now() })
  await tx('api_token').where({ team_id: id }).delete()
}
