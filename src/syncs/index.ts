/**
 * Syncs: what a job asks for, as a plan, and the engine that reads pages and delivers them, resumable at every page.
 *
 * Lives here: sync jobs, the check and compilation of their resources, the walk over parents and loops, checkpoints, the
 * webhook sink. Never here: HTTP to third parties (a page source does it), leases and retries of runs (the queue's), cron.
 */

export { type ArgsRules, resolveArgs } from './args.ts'
export {
  checkTriggerResources,
  createSyncJob,
  deleteSyncJob,
  getSyncJob,
  listSyncJobs,
  type SyncJobInput,
  updateSyncJob,
} from './job.ts'
export { type PageOutcome, startFailureOutcome, upstreamErrorOutcome } from './page-outcome.ts'
export { type ListingRequest, methodFacts, type PageSource } from './page-source.ts'
export { DEFAULT_ID_PATH, recordKeyOf } from './record-id.ts'
export { readSyncResources } from './resource.ts'
export { type ExecutableRun, executeRun } from './run.ts'
export { findIncompleteness } from './run-stats.ts'
export type { Sink, SinkResult } from './sink.ts'
export type { SyncJobRecord } from './sql.ts'
export { executeWebhookRun } from './webhook-run.ts'
