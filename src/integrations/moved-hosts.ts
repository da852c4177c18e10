import { type DotPath, Failure, formatDotPath, isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import type { Db, Tx } from '../database/index.ts'
import { hostsOf, resolveConfig } from '../definitions/index.ts'
import { startTask } from '../tasks/index.ts'
import type { EnvironmentScope } from '../tenancy/index.ts'
import type { EnvironmentIntegrationRecord } from './sql/installations.ts'
import { type IntegrationDeps, secretNameAt, storedSecretPaths } from './stored-config.ts'

/** Who installs: an environment token, or, by default, the team that owns the environment. */
export interface InstallerScope extends EnvironmentScope {
  readonly kind?: 'team' | 'environment' | 'link'
}

/** What a change of an override does to where requests are sent. */
export interface OverrideDifference {
  /** Paths in the override whose values are others than before. */
  readonly paths: readonly string[]
  /** Scheme and authority of the addresses that were not there before, with the variables in them. */
  readonly hostsAdded: readonly string[]
  readonly hostsRemoved: readonly string[]
}

/** Most paths and hosts of one event. */
const NAMED_MAX = 100

/** Compares two overrides of a definition. All are masked. */
export function compareOverrides(config: JsonObject, before: JsonObject, after: JsonObject): OverrideDifference {
  const [from, to] = [before, after].map((override) => hostsOf(resolveConfig(config, override).config))
  return {
    paths: changedPaths(before, after, [])
      .map((path) => formatDotPath(path))
      .slice(0, NAMED_MAX),
    hostsAdded: [...(to ?? [])].filter((host) => from?.has(host) !== true).slice(0, NAMED_MAX),
    hostsRemoved: [...(from ?? [])].filter((host) => to?.has(host) !== true).slice(0, NAMED_MAX),
  }
}

function changedPaths(before: Json, after: Json, path: DotPath): DotPath[] {
  if (isJsonObject(before) && isJsonObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...names].flatMap((name) => changedPaths(before[name] ?? null, after[name] ?? null, [...path, name]))
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [path]
}

/** An override that is to be stored. */
export interface OverrideToStore {
  readonly config: JsonObject
  readonly before: JsonObject
  readonly after: JsonObject
  /** Absent: it is not installed yet. */
  readonly installationId: string | undefined
  /**
   * The accounts will have to be connected again: names of the secrets that are given with the override. Absent: they keep their
   * credentials.
   */
  readonly newSecrets?: readonly string[] | undefined
}

/**
 * Requires a team token for a change of hosts once there is something to protect: secrets of the definition, secrets of the override
 * that stay, or accounts that keep their credentials, which were entered for the hosts before. An environment token could else have
 * them sent to itself.
 *
 * @throws Failure TEAM_TOKEN_REQUIRED
 */
export async function assertMayMoveHosts(
  deps: Pick<IntegrationDeps, 'accounts'>,
  tx: Db,
  { kind, environmentId }: InstallerScope,
  change: OverrideToStore,
): Promise<void> {
  if (kind !== 'environment') return
  const { hostsAdded } = compareOverrides(change.config, change.before, change.after)
  if (hostsAdded.length === 0) return
  const keeps = keptSecrets(change)
  const hasAccounts = keeps.length === 0 && (await keepsAccounts(deps, tx, environmentId, change))
  if (keeps.length === 0 && !hasAccounts) return
  const hosts = hostsAdded.slice(0, 3).join(', ').slice(0, 500)
  const what = hasAccounts
    ? 'connected accounts are for those before: change it with a team token, or set reauthorize_accounts, with which they have to be connected again'
    : `secrets are for those before (${keeps.slice(0, 3).join(', ').slice(0, 500)}): change it with a team token, or give other secrets in the override, with reauthorize_accounts`
  throw new Failure('TEAM_TOKEN_REQUIRED', `the override sends requests to other hosts (${hosts}), while ${what}`)
}

/** Paths of the secrets that were not entered for the new hosts. */
function keptSecrets({ config, before, after, newSecrets }: OverrideToStore): readonly string[] {
  const paths =
    newSecrets === undefined
      ? [...storedSecretPaths(before), ...storedSecretPaths(config)]
      : storedSecretPaths(resolveConfig(config, after).config).filter(
          (path) => !newSecrets.includes(secretNameAt(path)),
        )
  return paths.map((path) => formatDotPath(path))
}

async function keepsAccounts(
  { accounts }: Pick<IntegrationDeps, 'accounts'>,
  tx: Db,
  environmentId: string,
  { installationId, newSecrets }: OverrideToStore,
): Promise<boolean> {
  if (newSecrets !== undefined || installationId === undefined) return false
  return await accounts.existOfInstallation(tx, environmentId, installationId)
}

/** Name of the task in the contract. */
export const REAUTHORIZATION_KIND = 'reauthorize_accounts'

/**
 * Starts the task that puts the accounts of an installation to `needs_reauth`. With the commit their credentials are sent nowhere
 * any more, before the task reaches them.
 *
 * @throws Failure RATE_LIMITED as `startTask`
 */
export async function startReauthorization(
  tx: Tx,
  { environmentId, id, reauthorizationVersion }: EnvironmentIntegrationRecord,
): Promise<void> {
  const params = { environment_integration_id: id, version: reauthorizationVersion }
  await startTask(tx, { environmentId, kind: REAUTHORIZATION_KIND, params })
}
