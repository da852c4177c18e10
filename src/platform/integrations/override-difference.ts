import { hostsOf, resolveConfig } from '../../engine/definitions/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import { type DotPath, formatDotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { startTask } from '../../foundation/queue/index.ts'
import type { EnvironmentIntegrationRecord } from './sql/installations.ts'

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
