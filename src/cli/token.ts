import { parseArgs } from 'node:util'
import { isUuid } from '../base/index.ts'
import { readConfig } from '../config.ts'
import { type Installation, openInstallation } from '../installation.ts'
import { findOperatorTeam } from '../storage/index.ts'
import { createApiToken, listApiTokens, revokeApiToken, type TeamActor } from '../tenancy/index.ts'
import type { Command } from './command.ts'
import { prepareFirstStart } from './first-start.ts'
import { UsageError } from './usage-error.ts'

const USAGE = `token create [--team ID | --environment ID] --name NAME
       token list
       token revoke ID`
const LISTED_MAX = 1_000

/** Administers the tokens of the operator's team without one: for the first one lost, or for scripts on the same machine. */
export const tokenCommand: Command = {
  name: 'token',
  usage: 'token create|list|revoke',
  summary: 'administer API tokens of the first team',
  async run(args, environment) {
    const { values, positionals } = parse(args)
    const config = readConfig(environment)
    await using installation = await openInstallation(config, {
      applicationName: 'patchbay token',
      ownsEmbedded: false,
    })
    await prepareFirstStart(config, installation)
    const actor = await operator(installation)
    const [action, id, ...rest] = positionals
    if (rest.length > 0) throw new UsageError(USAGE)
    if (action === 'create' && id === undefined) await create(installation, actor, values)
    else if (action === 'list' && id === undefined) await list(installation, actor)
    else if (action === 'revoke' && id !== undefined) await revoke(installation, actor, id)
    else throw new UsageError(USAGE)
    return 0
  },
}

interface Options {
  readonly team?: string | undefined
  readonly environment?: string | undefined
  readonly name?: string | undefined
}

function parse(args: readonly string[]): { readonly values: Options; readonly positionals: readonly string[] } {
  const text = { type: 'string' } as const
  try {
    return parseArgs({
      args: [...args],
      options: { team: text, environment: text, name: text },
      allowPositionals: true,
    })
  } catch {
    throw new UsageError(USAGE)
  }
}

async function operator({ database }: Installation): Promise<TeamActor> {
  const team = await findOperatorTeam(database.direct)
  if (team === undefined) throw new Error('the first team is missing right after it was made')
  return { teamId: team.id, isOperator: true }
}

async function create({ database }: Installation, actor: TeamActor, options: Options): Promise<void> {
  const { team, environment, name } = options
  const ids = [team, environment].filter((id) => id !== undefined)
  if (name === undefined || ids.length > 1 || !ids.every(isUuid)) throw new UsageError(USAGE)
  const subject =
    environment === undefined
      ? ({ kind: 'team', teamId: team } as const)
      : ({ kind: 'environment', environmentId: environment } as const)
  const { token } = await database.transaction((tx) => createApiToken(tx, actor, { ...subject, name }))
  process.stdout.write(`${token}\n`)
}

async function list({ database }: Installation, { teamId }: TeamActor): Promise<void> {
  const tokens = await listApiTokens(database.direct, teamId, { before: undefined, limit: LISTED_MAX })
  for (const { id, kind, hint, name, revokedAt, expiresAt } of tokens) {
    const state = revokedAt !== null ? 'revoked' : expiresAt === null ? 'valid' : `until ${expiresAt.toISOString()}`
    process.stdout.write(`${id}  ${kind.padEnd(11)}  …${hint}  ${state.padEnd(7)}  ${name}\n`)
  }
}

async function revoke({ database }: Installation, { teamId }: TeamActor, id: string): Promise<void> {
  if (!isUuid(id)) throw new UsageError(USAGE)
  await revokeApiToken(database.direct, teamId, id)
  process.stdout.write(`${id} is revoked\n`)
}
