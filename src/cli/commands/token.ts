import { isUuid, suggest } from '../../foundation/base/index.ts'
import { recordCommand } from '../../platform/audit/index.ts'
import {
  type ApiTokenWithSecret,
  createApiToken,
  findUnknownScopes,
  listApiTokens,
  revokeApiToken,
  type ScopeChoice,
  TOKEN_PRESETS,
} from '../../platform/tenancy/index.ts'
import { asOperator } from './as-operator.ts'
import { momentOf, type RunCommand, UsageError } from './command.ts'
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
  const scopes = scopesFrom(options)
  const expiresAt = options.expires === undefined ? undefined : momentOf('token create --expires', options.expires)
  const subject =
    environmentId === undefined
      ? ({ kind: 'team', teamId: team } as const)
      : ({ kind: 'environment', environmentId } as const)
  return asOperator(environment, COMMAND, async ({ database }, actor) => {
    const teamId = team?.toLowerCase() ?? actor.teamId
    const of = { ownerId: teamId, teamId, isImpersonation: teamId !== actor.teamId }
    const command = { ...of, method: 'patchbay token create', targetType: 'api_token' }
    const { token } = await recordCommand<ApiTokenWithSecret>(
      database,
      command,
      (made) => made?.apiToken.id,
      (note) =>
        database.transaction(async (tx) =>
          note(await createApiToken(tx, actor, { ...subject, name, scopes, expiresAt })),
        ),
    )
    printLine(token)
  })
}

/** @throws UsageError */
function scopesFrom({ preset, scopes }: { readonly preset?: string; readonly scopes?: string }): ScopeChoice {
  if ((preset === undefined) === (scopes === undefined))
    throw new UsageError(`token create needs --preset (${TOKEN_PRESETS.join(', ')}) or --scopes`)
  if (scopes !== undefined) {
    const names = scopes.split(',').map((name) => name.trim())
    const [unknown] = findUnknownScopes(names, '--scopes')
    if (unknown !== undefined) throw new UsageError(`${unknown.field} ${unknown.description}`)
    return { scopes: names }
  }
  const known = TOKEN_PRESETS.find((name) => name === preset)
  if (known === undefined)
    throw new UsageError(`--preset ${preset} is not a preset${suggest(preset ?? '', TOKEN_PRESETS)}`)
  return { preset: known }
}

/** Lists the tokens of the first team. */
export const runTokenList: RunCommand = ({ environment }) =>
  asOperator(environment, COMMAND, async ({ database }, { teamId }) => {
    const tokens = await listApiTokens(database.pool, teamId, { before: undefined, limit: LISTED_MAX })
    for (const { id, kind, hint, name, preset, scopes, revokedAt, expiresAt } of tokens) {
      const state = revokedAt !== null ? 'revoked' : expiresAt === null ? 'valid' : `until ${expiresAt.toISOString()}`
      printLine(
        `${id}  ${kind.padEnd(11)}  …${hint}  ${state.padEnd(7)}  ${(preset ?? scopes.join(',')).padEnd(8)}  ${name}`,
      )
    }
  })

/** Revokes a token of the first team. */
export const runTokenRevoke: RunCommand = ({ operands: [id = ''], environment }) => {
  if (!isUuid(id)) throw new UsageError('token revoke takes the id of a token, as token list shows it')
  return asOperator(environment, COMMAND, async ({ database }, { teamId }) => {
    const of = { ownerId: teamId, teamId, isImpersonation: false }
    const command = { ...of, method: 'patchbay token revoke', targetType: 'api_token' }
    await recordCommand(
      database,
      command,
      () => id,
      () => database.transaction((tx) => revokeApiToken(tx, teamId, id)),
    )
    printLine(`${id} is revoked`)
  })
}
