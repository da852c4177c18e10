import { isUuid } from '../base/index.ts'
import { createApiToken, listApiTokens, revokeApiToken } from '../tenancy/index.ts'
import { asOperator } from './as-operator.ts'
import { type RunCommand, UsageError } from './command.ts'
import { printLine } from './output.ts'

/** As the database sees the connections. */
const COMMAND = 'patchbay token'
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
  return asOperator(environment, COMMAND, async ({ database }, actor) => {
    const { token } = await database.transaction((tx) => createApiToken(tx, actor, { ...subject, name }))
    printLine(token)
  })
}

/** Lists the tokens of the first team. */
export const runTokenList: RunCommand = ({ environment }) =>
  asOperator(environment, COMMAND, async ({ database }, { teamId }) => {
    const tokens = await listApiTokens(database.pool, teamId, { before: undefined, limit: LISTED_MAX })
    for (const { id, kind, hint, name, revokedAt, expiresAt } of tokens) {
      const state = revokedAt !== null ? 'revoked' : expiresAt === null ? 'valid' : `until ${expiresAt.toISOString()}`
      printLine(`${id}  ${kind.padEnd(11)}  …${hint}  ${state.padEnd(7)}  ${name}`)
    }
  })

/** Revokes a token of the first team. */
export const runTokenRevoke: RunCommand = ({ operands: [id = ''], environment }) => {
  if (!isUuid(id)) throw new UsageError('token revoke takes the id of a token, as token list shows it')
  return asOperator(environment, COMMAND, async ({ database }, { teamId }) => {
    await database.transaction((tx) => revokeApiToken(tx, teamId, id))
    printLine(`${id} is revoked`)
  })
}
