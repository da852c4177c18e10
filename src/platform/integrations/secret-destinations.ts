import {
  findDivertibleSecrets,
  type HostValue,
  isOfCaller,
  openHostsOf,
  resolveConfig,
} from '../../engine/definitions/index.ts'
import type { Violation } from '../../foundation/base/index.ts'
import { type DotPath, formatDotPath, getAtPath, type JsonObject } from '../../foundation/json/index.ts'
import { findSecretExfiltrationPaths } from './override-allowlist.ts'
import { storedSecretPaths } from './stored-config.ts'

/** A definition and its override where it is installed; secrets are masked. */
interface Installed {
  readonly config: JsonObject
  readonly override: JsonObject
  /** Another team than the owner of the definition has installed it. */
  readonly isForeign: boolean
}

/**
 * Paths of the definition's own secrets that are not used in an installation, because others decide where they would be sent (D46):
 * all of them where another team's override could send them elsewhere; else those whose way leads over a host that a value of an
 * account or caller decides, or, for another team, any value at all.
 */
export function findWithheldSecrets(installed: Installed): readonly DotPath[] {
  const { config, override, isForeign } = installed
  const paths = storedSecretPaths(config)
  if (paths.length === 0) return []
  if (isForeign && findSecretExfiltrationPaths(override).length > 0) return paths
  return divertedOf(installed, paths).map(({ path }) => path)
}

/** Violations for secrets that would be withheld and that the override of another team does not replace. */
export function findMissingSecrets(installed: Installed, path: string): readonly Violation[] {
  const diverted = installed.isForeign ? divertedOf(installed, storedSecretPaths(installed.config)) : []
  return diverted
    .filter((each) => getAtPath(installed.override, each.path) === undefined)
    .map((each) => ({
      field: formatDotPath(each.path, path),
      description: `is needed: the owner's is not used, because a value of yours decides where it is sent (${each.address.address.slice(0, 200)})`,
      rule: 'override.diverts_secrets',
    }))
}

function divertedOf({ config, override, isForeign }: Installed, paths: readonly DotPath[]) {
  const effective = resolveConfig(config, override).config
  const isOfCustomer = openHostsOf(effective)
  const isOpen = (value: HostValue, at: DotPath) => {
    if (isForeign) return value.root !== 'connection' || value.name === 'webhook'
    return isOfCustomer(value, at) || isOfCaller(value, at)
  }
  return findDivertibleSecrets(effective, paths, isOpen)
}
