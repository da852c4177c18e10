import { Failure, type PollLoopSpec } from '../../foundation/base/index.ts'
import type { Database, Db } from '../../foundation/database/index.ts'
import type { DefinitionCache, EffectiveDefinition } from './definition-cache.ts'
import { recordInstallationEvent } from './installation-events.ts'
import {
  claimClientSecretWarning,
  type InstallationRef,
  listInstallationsWithSecretExpiry,
  storeClientSecretExpiry,
} from './sql/client-secrets.ts'
import { findEnvironmentIntegration } from './sql/installations.ts'

const INTERVAL_MS = 10 * 60_000
const BATCH_SIZE = 100
/** The end of a secret is announced so long before: a new one has to be registered by a person. */
const WARNING_MS = 30 * 24 * 3_600_000

/** What watching client secrets takes. */
interface ClientSecretOptions {
  readonly database: Pick<Database, 'pool' | 'transaction'>
  readonly definitions: Pick<DefinitionCache, 'get'>
}

/**
 * Stores when the secret of each installation's client ends (`lifetimes.client_secret_expires_at`), and records
 * `environment_integration:client_secret_expiring` once, 30 days before.
 */
export function clientSecretWatch(options: ClientSecretOptions): PollLoopSpec {
  let after: InstallationRef | undefined
  return {
    name: 'client-secrets',
    intervalMs: INTERVAL_MS,
    async runOnce() {
      const found = await listInstallationsWithSecretExpiry(options.database.pool, after, BATCH_SIZE)
      for (const installation of found) await checkInstallation(options, installation)
      after = found.length === BATCH_SIZE ? found.at(-1) : undefined
      return after !== undefined
    },
  }
}

async function checkInstallation(
  { database, definitions }: ClientSecretOptions,
  installation: InstallationRef,
): Promise<void> {
  const expiresAt = await findExpiry(definitions, database.pool, installation)
  await database.transaction(async (tx) => {
    await storeClientSecretExpiry(tx, installation, expiresAt)
    if (!(await claimClientSecretWarning(tx, installation, WARNING_MS))) return
    const stored = await findEnvironmentIntegration(tx, installation.environmentId, installation.id)
    if (stored !== undefined)
      await recordInstallationEvent(tx, 'environment_integration:client_secret_expiring', stored)
  })
}

/** `undefined` also for a definition that does not compile, and an installation that was just deleted. */
async function findExpiry(
  definitions: Pick<DefinitionCache, 'get'>,
  tx: Db,
  { environmentId, id }: InstallationRef,
): Promise<Date | undefined> {
  try {
    return earliestExpiry(await definitions.get(tx, environmentId, id))
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}

/** Of the ways to connect the first that ends. */
function earliestExpiry({ plan, environmentVariables }: EffectiveDefinition): Date | undefined {
  const scope = { account: { environmentVariables, context: {}, credentials: {} }, call: {} }
  const ends = plan.credentials.flatMap(({ lifetimes }) => lifetimes?.clientSecretExpiresAt(scope) ?? [])
  return ends.toSorted((one, other) => one.getTime() - other.getTime())[0]
}
