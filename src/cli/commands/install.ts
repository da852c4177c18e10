import { checkConfig, findOverrideWarnings } from '../../engine/definitions/index.ts'
import { Failure, invalidFields, isUuid, systemClock, type Violation } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { createLogger } from '../../foundation/telemetry/index.ts'
import { type UpsertDefinitionInput, upsertDefinition } from '../../platform/integrations/index.ts'
import {
  type EnvironmentScope,
  findEnvironment,
  findOperatorTeam,
  listEnvironments,
} from '../../platform/tenancy/index.ts'
import { readConfig } from '../../server/config/index.ts'
import { createContainer } from '../../server/container.ts'
import { openStorage } from '../../server/open.ts'
import { findBrokenJobs } from '../../sync/jobs/index.ts'
import { type Invocation, type RunCommand, UsageError } from './command.ts'
import { type DefinitionFile, findInvalidName, readDefinition, readJsonFile } from './definition-file.ts'
import { prepareFirstStart } from './first-start.ts'
import { printLines } from './output.ts'

/** Environments that an error lists. */
const ENVIRONMENTS_SHOWN_MAX = 20

type OverrideChange = Pick<UpsertDefinitionInput, 'override' | 'replaceOverride'>

/**
 * Creates an integration from a definition and installs it. Run again after the file has changed, it replaces the
 * definition and keeps the accounts.
 */
export const runInstall: RunCommand = async ({ operands: [argument = ''], options, flags, environment }) => {
  const { environment: environmentId } = options
  if (environmentId !== undefined && !isUuid(environmentId)) throw new UsageError('install --environment takes an id')
  const definition = readDefinition(argument)
  assertName(definition)
  const override = readOverride(options)
  const showInCatalog = flags.has('showInCatalog') ? true : undefined
  const reauthorizeAccounts = flags.has('reauthorizeAccounts')
  const config = readConfig(environment)
  const logger = createLogger(config.logLevel)
  const storageOptions = { applicationName: 'patchbay install', isStart: false, logger }
  await using storage = await openStorage(config, storageOptions)
  await prepareFirstStart(config, storage)
  await using container = createContainer({ config, storage, logger })
  const { database } = storage
  const scope = await resolveScope(database, environmentId)
  const { installation: made, isReplaced } = await database.transaction((tx) =>
    upsertDefinition(container.integrations, tx, scope, {
      ...definition,
      ...override,
      reauthorizeAccounts,
      showInCatalog,
    }),
  )
  const broken = await findBrokenJobs(database.pool, scope.environmentId, definition.name)
  printLines([
    `${definition.name} is ${isReplaced ? 'replaced' : 'installed'}`,
    `integration             ${made.integrationId}`,
    `environment_integration ${made.id}`,
    ...findInstallWarnings(definition.config, override).map(
      ({ field, description, rule }) => `warning: ${field} ${description} [${rule}]`,
    ),
    ...broken.flatMap(({ job, violations }) =>
      violations.map(({ field, description }) => `warning: sync job ${job.id} (${job.label}): ${field} ${description}`),
    ),
  ])
  return 0
}

/**
 * The override file, with `--base-url` over it, replaces the stored override. Without a file `--base-url` is merged into the
 * stored one, which keeps its secrets; without both it is unchanged.
 */
function readOverride({ override: file, baseUrl }: Invocation['options']): OverrideChange {
  const changed = baseUrl === undefined ? undefined : { base_url: baseUrl }
  if (file === undefined) return { override: changed, replaceOverride: false }
  return { override: { ...readJsonFile(file), ...changed }, replaceOverride: true }
}

/** Of a replaced override only: a change that is merged into the stored one says nothing of the variables there. */
function findInstallWarnings(config: JsonObject, { override = {}, replaceOverride }: OverrideChange): Violation[] {
  return replaceOverride ? findOverrideWarnings(config, override, 'override', systemClock.now()) : []
}

/** @throws Failure DEFINITION_INVALID with every finding of the name and the config, when the name is invalid */
function assertName({ name, config }: DefinitionFile): void {
  const findings = findInvalidName(name)
  if (findings.length > 0)
    throw invalidFields([...findings, ...checkConfig(config, 'integration', 'config')], 'DEFINITION_INVALID')
}

/** The given environment, or the only one of the first team. */
async function resolveScope({ pool }: Database, environmentId: string | undefined): Promise<EnvironmentScope> {
  const found = environmentId === undefined ? await onlyEnvironment(pool) : await findEnvironment(pool, environmentId)
  if (found === undefined) throw new Failure('RESOURCE_NOT_FOUND', `there is no environment ${environmentId}`)
  return { teamId: found.teamId, environmentId: found.id }
}

async function onlyEnvironment(tx: Database['pool']) {
  const team = await findOperatorTeam(tx)
  const found = team === undefined ? [] : await listEnvironments(tx, team.id, { limit: ENVIRONMENTS_SHOWN_MAX + 1 })
  const [only, another] = found
  if (only === undefined) throw new Failure('ENVIRONMENT_REQUIRED', 'there is no environment to install in')
  if (another === undefined) return only
  const shown = found.slice(0, ENVIRONMENTS_SHOWN_MAX).map(({ id, name }) => `${id} (${name})`)
  const names = [...shown, ...(found.length > ENVIRONMENTS_SHOWN_MAX ? ['…'] : [])].join(', ')
  throw new Failure('ENVIRONMENT_REQUIRED', `there are several environments: name one with --environment ID: ${names}`)
}
