import { catchFailure, Failure, invalidFields, suggestOneOf, type Violation } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import type { InstallationChoice } from '../integrations/sql/installations.ts'
import { isConnectable } from './catalog-entry.ts'
import type { LinkDependencies } from './dependencies.ts'

/** Credentials of an installation, by key. */
interface OfferedCredentials {
  readonly installation: InstallationChoice
  readonly keys: readonly string[]
  /** Those that a customer can use on the connect page. */
  readonly usable: readonly string[]
}

/**
 * Checks that a link can be restricted to credentials: one of its integrations has each of them, and each integration that it
 * names has one of them.
 *
 * @param integrations as the request names them; empty: all that the catalogue shows, of which those without them are not offered
 * @throws Failure INVALID_FIELD with every finding
 */
export async function assertCredentialsOffered(
  deps: Pick<LinkDependencies, 'accounts'>,
  tx: Db,
  allowed: readonly string[],
  integrations: readonly string[],
  installations: readonly InstallationChoice[],
): Promise<void> {
  if (allowed.length === 0) return
  const offered: OfferedCredentials[] = []
  for (const installation of installations) offered.push(await credentialsOf(deps, tx, installation))
  const unknown = allowed.flatMap((key, at) => {
    const description = findKeyProblem(offered, key)
    return description === undefined
      ? []
      : [{ field: `allowed_credentials[${at}]`, description, rule: 'link.credential' }]
  })
  const violations = unknown.length > 0 ? unknown : findLeftOut(offered, allowed, integrations)
  if (violations.length > 0) throw invalidFields(violations)
}

async function credentialsOf(
  { accounts }: Pick<LinkDependencies, 'accounts'>,
  tx: Db,
  installation: InstallationChoice,
): Promise<OfferedCredentials> {
  const definition = await catchFailure(() => accounts.definitions.getVersion(tx, installation))
  // One that does not compile is not offered.
  if (definition instanceof Failure) return { installation, keys: [], usable: [] }
  const { plan, config } = definition
  const usable = plan.credentials.filter((connect) => isConnectable(connect, config))
  return { installation, keys: plan.credentials.map(({ key }) => key), usable: usable.map(({ key }) => key) }
}

function findKeyProblem(offered: readonly OfferedCredentials[], key: string): string | undefined {
  if (offered.some(({ usable }) => usable.includes(key))) return undefined
  const unusable = offered.find(({ keys }) => keys.includes(key))
  if (unusable === undefined) {
    const near = suggestOneOf(
      key,
      offered.flatMap(({ usable }) => usable),
    )
    return `is not a credential that an integration of the link offers${near}`
  }
  const { integrationName } = unusable.installation
  return `of ${integrationName} cannot be used on the connect page: its client is not set up, or it takes a token that was granted elsewhere`
}

/** Integrations that the request names and that the restriction leaves without any credential. */
function findLeftOut(
  offered: readonly OfferedCredentials[],
  allowed: readonly string[],
  integrations: readonly string[],
): Violation[] {
  const without = offered.filter(({ usable }) => !usable.some((key) => allowed.includes(key)))
  return without.flatMap(({ installation, usable }) => {
    const { environmentIntegrationId: id, integrationName } = installation
    const at = integrations.findIndex((name) => name === integrationName || name.toLowerCase() === id)
    const has = usable.length === 0 ? 'none at all' : usable.join(', ')
    const description = `is left without a credential by allowed_credentials: ${integrationName} offers ${has}`
    return at < 0 ? [] : [{ field: `integrations[${at}]`, description, rule: 'link.credential' }]
  })
}
