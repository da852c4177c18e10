import { isUuid, notFound } from '../../foundation/base/index.ts'
import { recordCommand } from '../../platform/audit/index.ts'
import { listTeams, setTeamVerified } from '../../platform/tenancy/index.ts'
import { asOperator } from './as-operator.ts'
import { type RunCommand, UsageError } from './command.ts'
import { printLine } from './output.ts'

/** As the database sees the connections. */
const COMMAND = 'patchbay team'
const LISTED_MAX = 1_000

/** Lists all teams. */
export const runTeamList: RunCommand = ({ environment }) =>
  asOperator(environment, COMMAND, async ({ database }, actor) => {
    const teams = await listTeams(database.pool, actor, { before: undefined, limit: LISTED_MAX })
    for (const { id, isVerified, name, domain } of teams) {
      const names = [name, domain].filter((text) => text !== '').join('  ')
      printLine(`${id}  ${isVerified ? 'verified  ' : 'unverified'}  ${names}`)
    }
  })

/** Marks a team as verified. */
export const runTeamVerify: RunCommand = (given) => changeMark(given, true)

/** Takes the mark away. */
export const runTeamUnverify: RunCommand = (given) => changeMark(given, false)

async function changeMark(
  { operands: [id = ''], environment }: Parameters<RunCommand>[0],
  isVerified: boolean,
): Promise<number> {
  if (!isUuid(id))
    throw new UsageError(`team ${isVerified ? 'verify' : 'unverify'} takes the id of a team, as team list shows it`)
  return await asOperator(environment, COMMAND, async ({ database }, { teamId }) => {
    const method = `patchbay team ${isVerified ? 'verify' : 'unverify'}`
    const of = { ownerId: id, teamId: id, isImpersonation: id !== teamId }
    const team = await recordCommand(
      database,
      { ...of, method, targetType: 'team' },
      () => id,
      async () => {
        const changed = await setTeamVerified(database.pool, id, isVerified)
        if (changed === undefined) throw notFound('team', id)
        return changed
      },
    )
    printLine(`${team.name} (${team.id}) is ${isVerified ? 'verified' : 'not verified'}`)
  })
}
