import { HOUR_MS, type PollLoopSpec } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import type { ObjectStore } from './object-store.ts'
import { claimExpiredObjects, claimUploads, completeUpload, deleteContextObject } from './sql.ts'

/** What the maintenance of objects needs. */
export interface ObjectMaintenanceDeps {
  readonly database: Pick<Database, 'pool'>
  readonly objects: Pick<ObjectStore, 'put' | 'delete'>
}

const UPLOAD_INTERVAL_MS = 2_000
/** Few, because each may have a megabyte. */
const UPLOAD_BATCH = 8
/** An upload that failed, or whose worker died, is tried again after this. */
const UPLOAD_LEASE_MS = 60_000
const DELETE_INTERVAL_MS = 10 * 60 * 1000
const DELETE_BATCH = 50
/** A deletion that failed is tried again after this. */
const DELETE_RETRY_MS = HOUR_MS

/** Stores new context values as objects. An object is stored before the database forgets its bytes. */
export function contextObjectUploader({ database, objects }: ObjectMaintenanceDeps): PollLoopSpec {
  return {
    name: 'context-object-uploads',
    intervalMs: UPLOAD_INTERVAL_MS,
    async runOnce() {
      const claimed = await claimUploads(database.pool, { limit: UPLOAD_BATCH, leaseMs: UPLOAD_LEASE_MS })
      const uploads = claimed.map(async (record) => {
        await objects.put(record, record.content)
        await completeUpload(database.pool, record)
      })
      throwFirstError(await Promise.allSettled(uploads))
      return claimed.length === UPLOAD_BATCH
    },
  }
}

/** Deletes objects that no account has any more. */
export function contextObjectCleaner({ database, objects }: ObjectMaintenanceDeps): PollLoopSpec {
  return {
    name: 'context-object-deletions',
    intervalMs: DELETE_INTERVAL_MS,
    async runOnce() {
      const expired = await claimExpiredObjects(database.pool, { limit: DELETE_BATCH, retryMs: DELETE_RETRY_MS })
      const deletions = expired.map(async ({ environmentId, id }) => {
        await objects.delete({ environmentId, id })
        await deleteContextObject(database.pool, environmentId, id)
      })
      throwFirstError(await Promise.allSettled(deletions))
      return expired.length === DELETE_BATCH
    },
  }
}

/** The loop logs the error of a round. */
function throwFirstError(results: readonly PromiseSettledResult<void>[]): void {
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
