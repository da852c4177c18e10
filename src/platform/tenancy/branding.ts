import type { Db } from '../../foundation/database/index.ts'
import { type EnvironmentBranding, findEnvironment } from './sql/environments.ts'
import { findTeam } from './sql/teams.ts'

/**
 * How an environment presents itself to people outside: its own branding, where that is empty name and logo of a team that is
 * white label. Texts are empty where neither is given.
 */
export async function findBranding(tx: Db, environmentId: string): Promise<EnvironmentBranding> {
  const environment = await findEnvironment(tx, environmentId)
  if (environment === undefined) return { displayName: '', logoUrl: '', accentColor: '' }
  const { displayName, logoUrl, accentColor, teamId } = environment
  const team = displayName === '' || logoUrl === '' ? await findTeam(tx, teamId) : undefined
  const shown = team?.isWhiteLabel === true ? team : undefined
  return { displayName: displayName || (shown?.name ?? ''), logoUrl: logoUrl || (shown?.logo ?? ''), accentColor }
}
