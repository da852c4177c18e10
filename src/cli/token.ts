import { isUuid } from '../base/index.ts'
import { readConfig } from '../config.ts'
import { openStorage, type Storage } from '../storage.ts'
import { createLogger } from '../telemetry/index.ts'
import { createApiToken, findOperatorTeam, listApiTokens, revokeApiToken, type TeamActor } from '../tenancy/index.ts'
import { type RunCommand, UsageError } from './command.ts'
import { prepareFirstStart } from './first-start.ts'

const LISTED_MAX = 1_000

/** Creates a token of the first team, another team or an environment, and prints it. */
export const runTokenCreate: RunCommand = ({ options, environment }) => {
  const { team, environment: environmentId, name } = options
  if (name === undefined) throw new UsageError('token create needs --name NAME')
  if (team !== undefined && environmentId !== undefined)
    throw new UsageError('token create takes --team or --environment, not both')
  for (const id of [team, environmentId])
    if (id !== undefined && !isUuid(id)) throw new UsageError('token create takes ids with --team and --environment')
  const subject =
    environmentId === undefined
      ? ({ kind: 'team', teamId: team } as const)
      : ({ kind: 'environment', environmentId } as const)
  return asOperator(environment, async ({ database }, actor) => {
    const { token } = await database.transaction((tx) => createApiToken(tx, actor, { ...subject, name }))
    process.stdout.write(`${token}\n`)
  })
}

/** Lists the tokens of the first team. */
export const runTokenList: RunCommand = ({ environment }) =>
  asOperator(environment, async ({ database }, { teamId }) => {
    const tokens = await listApiTokens(database.pool, teamId, { before: undefined, limit: LISTED_MAX })
    for (const { id, kind, hint, name, revokedAt, expiresAt } of tokens) {
      const state = revokedAt !== null ? 'revoked' : expiresAt === null ? 'valid' : `until ${expiresAt.toISOString()}`
      process.stdout.write(`${id}  ${kind.padEnd(11)}  …${hint}  ${state.padEnd(7)}  ${name}\n`)
    }
  })

/** Revokes a token of the first team. */
export const runTokenRevoke: RunCommand = ({ operands: [id = ''], environment }) => {
  if (!isUuid(id)) throw new UsageError('token revoke takes the id of a token, as token list shows it')
  return asOperator(environment, async ({ database }, { teamId }) => {
    await revokeApiToken(database.pool, teamId, id)
    process.stdout.write(`${id} is revoked\n`)
  })
}

/** Acts for the operator's team without a token, through the database: for a lost first token, or scripts on this machine. */
async function asOperator(
  environment: NodeJS.ProcessEnv,
  act: (storage: Storage, actor: TeamActor) => Promise<void>,
): Promise<number> {
  const config = readConfig(environment)
  const options = { applicationName: 'patchbay token', isStart: false, logger: createLogger(config.logLevel) }
  await using storage = await openStorage(config, options)
  await prepareFirstStart(config, storage)
  await act(storage, await getOperatorTeam(storage))
  return 0
}

async function getOperatorTeam({ database }: Storage): Promise<TeamActor> {
  const team = await findOperatorTeam(database.pool)
  if (team === undefined) throw new Error('the first team is missing right after it was made')
  return { teamId: team.id, isOperator: true }
}
