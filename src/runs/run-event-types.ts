import type { EventType } from '../events/index.ts'
import type { RunStatus } from './run.ts'

/** An event of a change of a run, or of a tick that could not become one. */
export type RunEventType = Extract<EventType, `sync_job_run:${string}` | 'sync_job_cron_trigger:failed'>

/** What a run sends to its destination itself, in order with the records; the destination gets no delivery of it. */
export const DESTINATION_EVENTS = [
  'sync_job_run:started',
  'sync_job_run:completed',
  'sync_job_run:failed',
] as const satisfies readonly RunEventType[]

/** The event of a change to a status, unless the change has one of its own. */
export const STATUS_EVENTS: Readonly<Record<RunStatus, RunEventType>> = {
  created: 'sync_job_run:updated',
  running: 'sync_job_run:updated',
  rate_limited: 'sync_job_run:rate_limited',
  completed: 'sync_job_run:completed',
  partially_completed: 'sync_job_run:completed',
  failed: 'sync_job_run:failed',
  stopped: 'sync_job_run:updated',
  skipped: 'sync_job_run:updated',
}
