import { publicVariables } from '../../engine/definitions/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import { formatDotPath, type JsonObject } from '../../foundation/json/index.ts'
import type { Lease } from '../../foundation/queue/index.ts'
import type { SyncableAccount } from '../../platform/accounts/index.ts'
import { methodFacts } from '../jobs/page-source.ts'
import { isUnifiedName, readSyncResources } from '../jobs/resource.ts'
import { type MappingFinder, unifiedRefOf } from '../jobs/unified-nodes.ts'
import type { QueuedRun, Run } from '../runs/run.ts'

/** A claimed run with everything that a daemon needs to execute it, except records and credentials. */
export interface Assignment
  extends Pick<
    Lease<QueuedRun>,
    'leaseId' | 'leaseExpiresAt' | 'checkpoint' | 'attemptsMax' | 'giveUpAfterSeconds' | 'nextTickAt'
  > {
  readonly run: Run
  readonly tenantId: string
  readonly context: JsonObject
  readonly environmentVariables: JsonObject
  /** The earliest date of the resources; `null` when one of them has none. */
  readonly previousRunDate: Date | null
  /** In the order of the run's resources. */
  readonly resources: readonly AssignedResource[]
}

/** What a daemon needs of the definition of one method. */
interface AssignedResource {
  readonly idPath: readonly string[]
  /** Dotted, below the root `resources`. */
  readonly parentPaths: readonly string[]
  /** `null`: a full sync. */
  readonly previousRunDate: Date | null
  /** Of a unified resource: the JSON Schema of its records. */
  readonly recordSchema: JsonObject | undefined
}

/**
 * Composes the assignment of a claimed run.
 *
 * @param recordSchemas of the run's resources, see `findRecordSchemas`
 */
export function createAssignment(
  claimed: Lease<QueuedRun>,
  run: Run,
  { account, definition }: SyncableAccount,
  recordSchemas: readonly (JsonObject | undefined)[],
): Assignment {
  const { leaseId, leaseExpiresAt, checkpoint, previousRunDates, attemptsMax, giveUpAfterSeconds, nextTickAt } = claimed
  const { idPath, parentPaths } = methodFacts(definition.plan)
  return {
    run,
    leaseId,
    leaseExpiresAt,
    checkpoint,
    attemptsMax,
    giveUpAfterSeconds,
    nextTickAt,
    previousRunDate: earliestDate(previousRunDates),
    tenantId: account.tenantId,
    context: account.context,
    environmentVariables: publicVariables(definition.environmentVariables),
    resources: readSyncResources(run.resources).map(({ resource, method }, index) => ({
      previousRunDate: previousRunDates[index] ?? null,
      recordSchema: recordSchemas[index],
      idPath: idPath(resource, method).map(String),
      parentPaths: parentPaths(resource, method).map((path) => formatDotPath(path)),
    })),
  }
}

/**
 * The schemas of the records of unified resources, in the order of the run's resources; `undefined` for all others.
 *
 * @throws Failure UNIFIED_NOT_MAPPED, DEFINITION_INVALID when the account has no mapping for one of them
 */
export async function findRecordSchemas(
  mappings: MappingFinder,
  tx: Db,
  { resources }: Pick<Run, 'resources'>,
  { account }: SyncableAccount,
): Promise<readonly (JsonObject | undefined)[]> {
  const { environmentId, id: integratedAccountId, integrationName } = account
  const mapped = { environmentId, integratedAccountId, integrationName }
  const schemas: (JsonObject | undefined)[] = []
  for (const node of readSyncResources(resources)) {
    const isUnified = isUnifiedName(node.resource)
    schemas.push(isUnified ? (await mappings.find(tx, mapped, unifiedRefOf(node))).resource.schema : undefined)
  }
  return schemas
}

function earliestDate(dates: readonly (Date | null)[]): Date | null {
  const known = dates.filter((date) => date !== null)
  return known.length < dates.length ? null : new Date(Math.min(...known.map((date) => date.getTime())))
}
