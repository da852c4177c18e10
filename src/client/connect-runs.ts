import { createClient } from '@connectrpc/connect'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { newId } from '../base/index.ts'
import { type FollowedRun, followedRunFromProto } from './followed-run.ts'
import { clientErrorFrom } from './refusal.ts'
import { connectTransport, type ServerAddress } from './transport.ts'

/** What can be done with runs. Everything fails with a `Failure` of the server's reason, or with `ServerUnavailable`. */
export interface RunsClient {
  /** Makes a run of the trigger, now. */
  start(triggerId: string): Promise<FollowedRun>
  /** The run at once and after every change, until it is over; `undefined` is a sign of life in between. */
  watch(id: string, signal: AbortSignal): AsyncIterable<FollowedRun | undefined>
}

const START_TIMEOUT_MS = 30_000

/** A client of the server at that address. */
export function createRunsClient(address: ServerAddress): RunsClient {
  const transport = connectTransport(address)
  const triggers = createClient(SyncJobCronTriggerService, transport)
  const runs = createClient(SyncJobRunService, transport)
  return {
    async start(id) {
      const request = { id, requestId: newId() }
      const started = triggers.runSyncJobCronTrigger(request, { timeoutMs: START_TIMEOUT_MS })
      return followedRunFromProto(await started.catch(throwClientError))
    },
    async *watch(id, signal) {
      try {
        for await (const { syncJobRun } of runs.watchSyncJobRun({ id }, { signal }))
          yield syncJobRun && followedRunFromProto(syncJobRun)
      } catch (error) {
        throwClientError(error)
      }
    },
  }
}

function throwClientError(error: unknown): never {
  throw clientErrorFrom(error)
}
