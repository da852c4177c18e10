import { parseArgs } from 'node:util'
import { Failure, isUuid } from '../base/index.ts'
import { readConfig } from '../config.ts'
import { composeDomain } from '../domain.ts'
import { openInstallation } from '../installation.ts'
import { putDefinition } from '../integrations/index.ts'
import { type Database, findEnvironment, findOperatorTeam, listEnvironments, type Scope } from '../storage/index.ts'
import { createLogger } from '../telemetry/index.ts'
import type { Command } from './command.ts'
import { readDefinition, readJsonFile } from './definition-file.ts'
import { prepareFirstStart } from './first-start.ts'
import { UsageError } from './usage-error.ts'

const USAGE = 'install FILE|NAME [--environment ID] [--override FILE]'

/**
 * Makes an integration of a definition and installs it, in one step. Run again after the file has changed, it replaces the
 * definition; accounts stay.
 */
export const installCommand: Command = {
  name: 'install',
  usage: USAGE,
  summary: 'install a definition from a file or the catalog',
  async run(args, environment) {
    const { argument, environmentId, overrideFile } = parse(args)
    const definition = readDefinition(argument)
    const override = overrideFile === undefined ? undefined : readJsonFile(overrideFile)
    const config = readConfig(environment)
    await using installation = await openInstallation(config, {
      applicationName: 'patchbay install',
      ownsEmbedded: false,
    })
    await prepareFirstStart(config, installation)
    await using domain = composeDomain({ config, installation, logger: createLogger(config.logLevel) })
    const { database } = installation
    const scope = await scopeOf(database, environmentId)
    const { installation: made, isReplaced } = await database.transaction((tx) =>
      putDefinition(domain.integrations, tx, scope, { ...definition, override }),
    )
    process.stdout.write(
      [
        `${definition.name} is ${isReplaced ? 'replaced' : 'installed'}`,
        `integration             ${made.integrationId}`,
        `environment_integration ${made.id}`,
        '',
      ].join('\n'),
    )
    return 0
  },
}

interface Arguments {
  readonly argument: string
  readonly environmentId: string | undefined
  readonly overrideFile: string | undefined
}

function parse(args: readonly string[]): Arguments {
  const text = { type: 'string' } as const
  const { values, positionals } = orUsage(() =>
    parseArgs({ args: [...args], options: { environment: text, override: text }, allowPositionals: true }),
  )
  const [argument, ...rest] = positionals
  const { environment: environmentId, override: overrideFile } = values
  if (argument === undefined || rest.length > 0) throw new UsageError(USAGE)
  if (environmentId !== undefined && !isUuid(environmentId)) throw new UsageError(USAGE)
  return { argument, environmentId, overrideFile }
}

function orUsage<Result>(parseAll: () => Result): Result {
  try {
    return parseAll()
  } catch {
    throw new UsageError(USAGE)
  }
}

/** The environment named, or the only one of the first team. */
async function scopeOf({ direct }: Database, environmentId: string | undefined): Promise<Scope> {
  const found =
    environmentId === undefined ? await onlyEnvironment(direct) : await findEnvironment(direct, environmentId)
  if (found === undefined) throw new Failure('RESOURCE_NOT_FOUND', `there is no environment ${environmentId}`)
  return { teamId: found.teamId, environmentId: found.id }
}

async function onlyEnvironment(tx: Database['direct']) {
  const team = await findOperatorTeam(tx)
  const [only, another] = team === undefined ? [] : await listEnvironments(tx, team.id, undefined, 2)
  if (only === undefined || another !== undefined)
    throw new Failure('ENVIRONMENT_REQUIRED', 'there are several environments: name one with --environment ID')
  return only
}
