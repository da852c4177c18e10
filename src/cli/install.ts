import { Failure, isUuid, type JsonObject } from '../base/index.ts'
import { readConfig } from '../config.ts'
import { createContainer } from '../container.ts'
import type { Database } from '../database/index.ts'
import { upsertDefinition } from '../integrations/index.ts'
import { openStorage } from '../storage.ts'
import { createLogger } from '../telemetry/index.ts'
import { type EnvironmentScope, findEnvironment, findOperatorTeam, listEnvironments } from '../tenancy/index.ts'
import { type Invocation, type RunCommand, UsageError } from './command.ts'
import { readDefinition, readJsonFile } from './definition-file.ts'
import { prepareFirstStart } from './first-start.ts'

/**
 * Creates an integration from a definition and installs it. Run again after the file has changed, it replaces the
 * definition and keeps the accounts.
 */
export const runInstall: RunCommand = async ({ operands: [argument = ''], options, environment }) => {
  const { environment: environmentId } = options
  if (environmentId !== undefined && !isUuid(environmentId)) throw new UsageError('install --environment takes an id')
  const definition = readDefinition(argument)
  const override = readOverride(options)
  const config = readConfig(environment)
  const logger = createLogger(config.logLevel)
  const storageOptions = { applicationName: 'patchbay install', isStart: false, logger }
  await using storage = await openStorage(config, storageOptions)
  await prepareFirstStart(config, storage)
  await using domain = createContainer({ config, storage, logger })
  const { database } = storage
  const scope = await resolveScope(database, environmentId)
  const { installation: made, isReplaced } = await database.transaction((tx) =>
    upsertDefinition(domain.integrations, tx, scope, { ...definition, override }),
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

/** The override file, with `--base-url` over it; absent without both, which keeps the stored override. */
function readOverride({ override: file, baseUrl }: Invocation['options']): JsonObject | undefined {
  const override = file === undefined ? undefined : readJsonFile(file)
  return baseUrl === undefined ? override : { ...override, base_url: baseUrl }
}

/** The given environment, or the only one of the first team. */
async function resolveScope({ pool }: Database, environmentId: string | undefined): Promise<EnvironmentScope> {
  const found = environmentId === undefined ? await onlyEnvironment(pool) : await findEnvironment(pool, environmentId)
  if (found === undefined) throw new Failure('RESOURCE_NOT_FOUND', `there is no environment ${environmentId}`)
  return { teamId: found.teamId, environmentId: found.id }
}

async function onlyEnvironment(tx: Database['pool']) {
  const team = await findOperatorTeam(tx)
  const [only, another] = team === undefined ? [] : await listEnvironments(tx, team.id, { limit: 2 })
  if (only === undefined || another !== undefined)
    throw new Failure('ENVIRONMENT_REQUIRED', 'there are several environments: name one with --environment ID')
  return only
}
