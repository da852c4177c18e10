import { createClient, type Interceptor } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { newId } from '../base/index.ts'
import { type FollowedRun, followedRunFromProto } from './followed-run.ts'
import { refusalFrom } from './refusal.ts'

/** Where the server is, and as whom to call it. */
export interface ServerAddress {
  readonly url: string
  readonly token: string
  /** The environment, for a token of a team. */
  readonly environmentId: string | undefined
}

/** What can be done with runs. Everything fails with a `Failure` of the server's reason, or with `ServerAway`. */
export interface RunsClient {
  /** Makes a run of the trigger, now. */
  start(triggerId: string): Promise<FollowedRun>
  /** The run at once and after every change, until it is over; `undefined` is a sign of life in between. */
  watch(id: string, signal: AbortSignal): AsyncIterable<FollowedRun | undefined>
}

const START_TIMEOUT_MS = 30_000

/**
 * A client over Connect and HTTP/1.1, which passes through whatever stands before a server; connections are made when
 * they are needed.
 */
export function connectRuns({ url, token, environmentId }: ServerAddress): RunsClient {
  const authorise: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${token}`)
    if (environmentId !== undefined) request.header.set('patchbay-environment', environmentId)
    return next(request)
  }
  const transport = createConnectTransport({ baseUrl: url, httpVersion: '1.1', interceptors: [authorise] })
  const triggers = createClient(SyncJobCronTriggerService, transport)
  const runs = createClient(SyncJobRunService, transport)
  return {
    async start(id) {
      const request = { id, requestId: newId() }
      const started = triggers.runSyncJobCronTrigger(request, { timeoutMs: START_TIMEOUT_MS })
      return followedRunFromProto(await started.catch(throwRefusal))
    },
    async *watch(id, signal) {
      try {
        for await (const { syncJobRun } of runs.watchSyncJobRun({ id }, { signal }))
          yield syncJobRun && followedRunFromProto(syncJobRun)
      } catch (error) {
        throwRefusal(error)
      }
    },
  }
}

function throwRefusal(error: unknown): never {
  throw refusalFrom(error)
}
