import type { Db } from '../../foundation/database/index.ts'
import { findTeams, type TeamRecord } from '../tenancy/sql/teams.ts'
import { listInstalledEnvironments } from './sql/installations.ts'
import type { IntegrationRecord } from './sql/integrations.ts'

/** An integration as a team sees it. */
export interface Integration extends IntegrationRecord {
  readonly team: TeamRecord
  /** The environments of that team in which it is installed; never those of other teams. */
  readonly installedEnvironment: readonly string[]
}

/** Adds owner and installed environments, in two statements for any number of integrations. */
export async function withTeamAndEnvironments(
  tx: Db,
  teamId: string,
  records: readonly IntegrationRecord[],
): Promise<readonly Integration[]> {
  if (records.length === 0) return []
  const teams = await findTeams(tx, [...new Set(records.map((record) => record.teamId))])
  const teamById = new Map(teams.map((team) => [team.id, team]))
  const installed = await listInstalledEnvironments(
    tx,
    teamId,
    records.map(({ id }) => id),
  )
  return records.map((record) => {
    const team = teamById.get(record.teamId)
    if (team === undefined) throw new Error(`no team ${record.teamId}, which owns an integration`)
    return { ...record, team, installedEnvironment: installed.get(record.id) ?? [] }
  })
}

/** Whether an integration is visible to a team: its own always, another team's unless its sharing is `deny`. */
export function isVisible(integration: Pick<IntegrationRecord, 'teamId' | 'sharing'>, teamId: string): boolean {
  return integration.teamId === teamId || integration.sharing !== 'deny'
}
