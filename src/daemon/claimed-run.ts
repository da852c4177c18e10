import { toJson } from '@bufbuild/protobuf'
import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { ClaimedResource, ClaimedRun as ClaimedRunMessage } from '../../gen/patchbay/v1/daemon_pb.ts'
import { SyncResourceSchema } from '../../gen/patchbay/v1/sync_job_pb.ts'
import { type DotPath, type JsonObject, parseDotPath } from '../base/index.ts'
import { DEFAULT_ID_PATH, type ExecutableRun } from '../sync/index.ts'
import type { StoreHolder } from './store.ts'

/** A run that was handed out, as engine, source and store take it. */
export interface ClaimedRun extends ExecutableRun {
  readonly id: string
  readonly leaseId: string
  readonly holder: StoreHolder
  readonly integratedAccountId: string
  readonly attemptsMax: number
  readonly context: JsonObject
  readonly environmentVariables: JsonObject
  readonly idPath: (resource: string, method: string) => DotPath
  readonly parentPaths: (resource: string, method: string) => readonly DotPath[]
}

const ERROR_HANDLING = ['fail_fast', 'ignore', 'batch'] as const

/** Reads a claimed run. `undefined` when the message says less than the contract promises. */
export function claimedRunFrom(message: ClaimedRunMessage): ClaimedRun | undefined {
  const { run, leaseId, leaseExpiresAt, resources } = message
  const errorHandling = ERROR_HANDLING.find((each) => each === run?.errorHandling)
  if (run === undefined || leaseExpiresAt === undefined || errorHandling === undefined) return undefined
  const { id, integratedAccountId, attempt } = run
  const found = (resource: string, method: string): ClaimedResource | undefined =>
    resources[run.resources.findIndex((each) => each.resource === resource && each.method === method)]
  return {
    ...{ id, leaseId, integratedAccountId, attempt, errorHandling },
    holder: { runId: id, integratedAccountId, leaseId, attempt, leasedUntil: timestampDate(leaseExpiresAt) },
    attemptsMax: message.attemptsMax,
    args: objectFrom(run.args),
    // A message without a spelling of its own is always an object.
    resources: run.resources.map((each) => toJson(SyncResourceSchema, each, { useProtoFieldName: true }) as JsonObject),
    previousRunDates: run.resources.map((_, index) => dateFrom(resources[index]?.previousRunDate)),
    checkpoint: message.checkpoint === undefined ? null : objectFrom(message.checkpoint),
    context: objectFrom(message.context),
    environmentVariables: objectFrom(message.environmentVariables),
    idPath(resource, method) {
      const path = found(resource, method)?.idPath ?? []
      return path.length === 0 ? DEFAULT_ID_PATH : path
    },
    parentPaths: (resource, method) => (found(resource, method)?.parentPaths ?? []).map(parseDotPath),
  }
}

function dateFrom(timestamp: ClaimedResource['previousRunDate']): Date | null {
  return timestamp === undefined ? null : timestampDate(timestamp)
}

/** protobuf's JSON type is ours without `readonly`. */
function objectFrom(json: object | undefined): JsonObject {
  return (json ?? {}) as JsonObject
}
