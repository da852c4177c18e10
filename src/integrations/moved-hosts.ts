import { type DotPath, Failure, formatDotPath, isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import type { Db } from '../database/index.ts'
import { hostsOf, resolveConfig } from '../definitions/index.ts'
import type { EnvironmentScope } from '../tenancy/index.ts'
import { type IntegrationDeps, storedSecretPaths } from './stored-config.ts'

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
}

/**
 * Requires a team token for a change of hosts once there is something to protect: secrets of the definition, secrets of the override
 * that stay, or accounts, whose credentials were entered for the hosts before. An environment token could else have them sent to
 * itself.
 *
 * @throws Failure TEAM_TOKEN_REQUIRED
 */
export async function assertMayMoveHosts(
  { accounts }: Pick<IntegrationDeps, 'accounts'>,
  tx: Db,
  { kind, environmentId }: InstallerScope,
  { config, before, after, installationId }: OverrideToStore,
): Promise<void> {
  if (kind !== 'environment') return
  const { hostsAdded } = compareOverrides(config, before, after)
  if (hostsAdded.length === 0) return
  const keeps = storedSecretPaths(before).length > 0 || storedSecretPaths(config).length > 0
  const isInUse =
    keeps || (installationId !== undefined && (await accounts.existOfInstallation(tx, environmentId, installationId)))
  if (!isInUse) return
  throw new Failure(
    'TEAM_TOKEN_REQUIRED',
    `the override sends requests to other hosts (${hostsAdded.slice(0, 3).join(', ').slice(0, 500)}), while secrets or connected accounts are for those before: change it with a team token`,
  )
}
