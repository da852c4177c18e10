import { Failure, isUuid, type JsonObject } from '../base/index.ts'
import { readConfig } from '../config.ts'
import { composeDomain } from '../domain.ts'
import { openInstallation } from '../installation.ts'
import { putDefinition } from '../integrations/index.ts'
import { type Database, findEnvironment, findOperatorTeam, listEnvironments, type Scope } from '../storage/index.ts'
import { createLogger } from '../telemetry/index.ts'
import type { Invocation, RunCommand } from './command.ts'
import { readDefinition, readJsonFile } from './definition-file.ts'
import { prepareFirstStart } from './first-start.ts'
import { UsageError } from './usage-error.ts'

/**
 * Makes an integration of a definition and installs it, in one step. Run again after the file has changed, it replaces the
 * definition; accounts stay.
 */
export const runInstall: RunCommand = async ({ operands: [argument = ''], options, environment }) => {
  const { environment: environmentId } = options
  if (environmentId !== undefined && !isUuid(environmentId)) throw new UsageError('install --environment takes an id')
  const definition = readDefinition(argument)
  const override = readOverride(options)
  const config = readConfig(environment)
  const logger = createLogger(config.logLevel)
  const installationOptions = { applicationName: 'patchbay install', isStart: false, logger }
  await using installation = await openInstallation(config, installationOptions)
  await prepareFirstStart(config, installation)
  await using domain = composeDomain({ config, installation, logger })
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
}

/** The override file with the address over it; absent without both, which keeps the override there is. */
function readOverride({ override: file, baseUrl }: Invocation['options']): JsonObject | undefined {
  const override = file === undefined ? undefined : readJsonFile(file)
  return baseUrl === undefined ? override : { ...override, base_url: baseUrl }
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
