/**
 * Syncs: what a job asks for, as a plan, and the engine that reads pages and delivers them, resumable at every page.
 *
 * Lives here: sync jobs, the check and compilation of their resources, the walk over parents and loops, checkpoints, the
 * webhook sink. Never here: HTTP to third parties (a page source does it), leases and retries of runs (the queue's), cron.
 */
export { type ArgsRules, resolveArgs } from './args.ts'
export { checkAgainstDefinition, methodNamesOf } from './check-definition.ts'
export { checkResources } from './check-resources.ts'
export {
  checkTriggerResources,
  createSyncJob,
  deleteSyncJob,
  getSyncJob,
  listSyncJobs,
  type SyncJobInput,
  updateSyncJob,
} from './job.ts'

export { compileSyncPlan } from './plan.ts'
export { DEFAULT_ID_PATH, recordKeyOf } from './record-id.ts'
export { readSyncResources, type SyncResource } from './resource.ts'
export { type ExecutableRun, executeRun, type SyncRunDeps } from './run.ts'
export type { Sink, SinkPage, SinkResult } from './sink.ts'
export { createWebhookSink, type WebhookRunFields } from './sinks/webhook-sink.ts'
export type { ListingRequest, PageSource, SourcePage } from './source.ts'
export { methodFacts } from './sources/proxy-source.ts'
export { findIncompleteness } from './tally.ts'
export { outcomeOf } from './verdict.ts'
export { executeWebhookRun, type WebhookRunDeps } from './webhook-run.ts'
