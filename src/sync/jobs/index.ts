/**
 * Syncs: the resources of a job compiled to a plan, and the engine that reads pages and delivers them, resumable at every page.
 *
 * Here: sync jobs, checks of resources and arguments, traversal of parents and loops, checkpoints, run statistics, the webhook
 * sink. Never here: HTTP to third parties (a page source), leases and retries of runs (runs/), schedules.
 */

export { type ArgsRules, resolveArgs } from './args.ts'
export {
  checkTriggerResources,
  createSyncJob,
  deleteSyncJob,
  findBrokenJobs,
  findJobWarnings,
  getSyncJob,
  listSyncJobs,
  type SyncJobInput,
  updateSyncJob,
} from './job.ts'
export { type PageOutcome, upstreamErrorOutcome } from './page-outcome.ts'
export type { ListingRequest, PageSource } from './page-source.ts'
export { DEFAULT_ID_PATH, recordKeyOf } from './record-id.ts'
export { isUnifiedName } from './resource.ts'
export { type ExecutableRun, executeRun } from './run.ts'
export type { Sink, SinkResult } from './sink.ts'
export type { SyncJobRecord } from './sql.ts'
export { assertMapped, strictQuery, unifiedRefOf } from './unified-nodes.ts'
export { executeWebhookRun } from './webhook-run.ts'
