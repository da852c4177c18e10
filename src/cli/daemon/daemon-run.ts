import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { ClaimedResource, ClaimedRun as ClaimedRunMessage } from '../../../gen/patchbay/v1/daemon_pb.ts'
import { type DotPath, type JsonObject, parseDotPath, parseJson } from '../../foundation/json/index.ts'
import type { Lease } from '../../foundation/queue/index.ts'
import { DEFAULT_ID_PATH, type ExecutableRun } from '../../sync/jobs/index.ts'
import { type ExecutedRun, GIVE_UP_AFTER_SECONDS_DEFAULT } from '../../sync/runs/index.ts'
import type { RunHolder } from './store.ts'

/** A claimed run as the engine, source and store need it. */
export interface DaemonRun extends ExecutableRun, Lease<ExecutedRun> {
  readonly holder: RunHolder
  readonly integratedAccountId: string
  readonly attemptsMax: number
  readonly context: JsonObject
  readonly environmentVariables: JsonObject
  readonly idPath: (resource: string, method: string) => DotPath
  readonly parentPaths: (resource: string, method: string) => readonly DotPath[]
  /** JSON Schema of the records of a unified resource; absent for others. */
  readonly recordSchema: (resource: string, method: string) => JsonObject | undefined
}

const ERROR_HANDLING = ['fail_fast', 'ignore', 'batch'] as const

/** Converts a claimed run. @returns `undefined` when a field that the contract promises is missing */
export function daemonRunFromProto(message: ClaimedRunMessage): DaemonRun | undefined {
  const { run, leaseId, leaseExpiresAt, resources, valuesJson } = message
  const errorHandling = ERROR_HANDLING.find((each) => each === run?.errorHandling)
  if (run === undefined || leaseExpiresAt === undefined || errorHandling === undefined || valuesJson === '')
    return undefined
  const { id, integratedAccountId, attempt } = run
  const { environment_variables: environmentVariables, ...values } = parseJson(
    valuesJson,
  ) as unknown as ClaimedRunValues
  const claimedResource = (resource: string, method: string): ClaimedResource | undefined =>
    resources[run.resources.findIndex((each) => each.resource === resource && each.method === method)]
  return {
    id,
    leaseId,
    integratedAccountId,
    attempt,
    errorHandling,
    resourceStats: run.resourceStats,
    holder: { runId: id, integratedAccountId, leaseId, attempt, leasedUntil: timestampDate(leaseExpiresAt) },
    attemptsMax: message.attemptsMax,
    giveUpAfterSeconds: message.giveUpAfterSeconds ?? GIVE_UP_AFTER_SECONDS_DEFAULT,
    nextTickAt: optionalDate(message.nextTickAt),
    ...values,
    environmentVariables,
    previousRunDates: run.resources.map((_, index) => optionalDate(resources[index]?.previousRunDate)),
    idPath(resource, method) {
      const path = claimedResource(resource, method)?.idPath ?? []
      return path.length === 0 ? DEFAULT_ID_PATH : path
    },
    parentPaths: (resource, method) => (claimedResource(resource, method)?.parentPaths ?? []).map(parseDotPath),
    // protobuf's JSON type is ours without `readonly`; a schema has no number that a double would change.
    recordSchema: (resource, method) => claimedResource(resource, method)?.recordSchema as JsonObject | undefined,
  }
}

function optionalDate(timestamp: ClaimedResource['previousRunDate']): Date | null {
  return timestamp === undefined ? null : timestampDate(timestamp)
}

/** Contents of `values_json`. */
interface ClaimedRunValues extends Pick<ExecutableRun, 'args' | 'resources' | 'checkpoint'> {
  readonly context: JsonObject
  readonly environment_variables: JsonObject
}
