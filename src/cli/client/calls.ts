import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { createClient } from '@connectrpc/connect'
import type { CallLogEntry } from '../../../gen/patchbay/v1/call_log_pb.ts'
import { CallLogService } from '../../../gen/patchbay/v1/call_log_service_pb.ts'
import { IntegratedAccountService } from '../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { SyncJobRunService } from '../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { callErrorFrom } from './errors.ts'
import { connectTransport, type ServerAddress } from './transport.ts'

/** A request to a third party, as the request log shows it. */
export type LoggedRequest = Pick<
  CallLogEntry,
  'id' | 'httpMethod' | 'url' | 'class' | 'status' | 'errorMessage' | 'attempt' | 'cause'
> & { readonly startedAt: Date; readonly totalMs: number }

/** The same with headers and bodies, where they are kept. */
export type LoggedRequestDetails = LoggedRequest &
  Pick<
    CallLogEntry,
    | 'causeId'
    | 'integratedAccountId'
    | 'resource'
    | 'method'
    | 'upstreamRequestId'
    | 'timings'
    | 'bytesSent'
    | 'bytesReceived'
    | 'content'
  >

/** Which requests; what is undefined does not restrict. */
export interface RequestFilter {
  readonly integratedAccountId: string | undefined
  readonly causeId: string | undefined
  readonly class: string | undefined
  readonly cause: string | undefined
  readonly failed: boolean | undefined
  /** Part of the path, or of resource and method. */
  readonly pathContains: string | undefined
}

/** Those that ended since a moment; undefined: from the beginning. */
interface ListedRequestFilter extends RequestFilter {
  readonly since: Date | undefined
}

/** What a list has found. */
interface ListedRequests {
  readonly requests: readonly LoggedRequest[]
  /** Entries of the environment that were not stored, because too many waited. */
  readonly droppedCount: number
}

/** Client for the request log. Every method throws a `Failure` with the server's reason, or `ServerUnavailable`. */
export interface CallsClient {
  /** One request. @throws Failure RESOURCE_NOT_FOUND */
  get(id: string): Promise<LoggedRequestDetails>
  /** The newest `limit` requests, newest first. An account or run that is not there is RESOURCE_NOT_FOUND. */
  list(filter: ListedRequestFilter, limit: number): Promise<ListedRequests>
  /** Requests from now on; `undefined` is a keep-alive in between. */
  watch(filter: RequestFilter, signal: AbortSignal): AsyncIterable<LoggedRequest | undefined>
}

const LIST_TIMEOUT_MS = 30_000
const PAGE_MAX = 1_000

/** Creates a client of the server at that address. */
export function createCallsClient(address: ServerAddress): CallsClient {
  const transport = connectTransport(address)
  const calls = createClient(CallLogService, transport)
  const accounts = createClient(IntegratedAccountService, transport)
  const runs = createClient(SyncJobRunService, transport)
  /** A list of an unknown account is an empty one: what a person names is looked up before. */
  async function assertKnown({ integratedAccountId, causeId }: RequestFilter): Promise<void> {
    const options = { timeoutMs: LIST_TIMEOUT_MS }
    if (integratedAccountId !== undefined)
      await accounts.getIntegratedAccount({ id: integratedAccountId }, options).catch(throwCallError)
    if (causeId !== undefined) await runs.getSyncJobRun({ id: causeId }, options).catch(throwCallError)
  }
  return {
    async get(id) {
      return requestFromProto(await calls.getCallLogEntry({ id }, { timeoutMs: LIST_TIMEOUT_MS }).catch(throwCallError))
    },
    async list({ since, ...filter }, limit) {
      await assertKnown(filter)
      const from = since === undefined ? {} : { since: timestampFromDate(since) }
      const found: LoggedRequest[] = []
      for (let pageToken = ''; ; ) {
        const request = {
          ...withoutAbsent(filter),
          ...from,
          pageSize: Math.min(PAGE_MAX, limit - found.length),
          pageToken,
        }
        const listed = calls.listCallLogEntries(request, { timeoutMs: LIST_TIMEOUT_MS })
        const { callLogEntries, nextPageToken, droppedCount } = await listed.catch(throwCallError)
        found.push(...callLogEntries.map(requestFromProto))
        if (nextPageToken === '' || found.length >= limit) return { requests: found, droppedCount }
        pageToken = nextPageToken
      }
    },
    async *watch(filter, signal) {
      await assertKnown(filter)
      try {
        for await (const { callLogEntry } of calls.watchCallLogEntries(withoutAbsent(filter), { signal }))
          yield callLogEntry && requestFromProto(callLogEntry)
      } catch (error) {
        throwCallError(error)
      }
    },
  }
}

function requestFromProto(entry: CallLogEntry): LoggedRequestDetails {
  const { startedAt, timings } = entry
  const startedMs = startedAt === undefined ? 0 : Number(startedAt.seconds) * 1_000 + startedAt.nanos / 1e6
  return { ...entry, startedAt: new Date(startedMs), totalMs: timings?.totalMs ?? 0 }
}

function withoutAbsent<Value extends object>(value: Value): { [Name in keyof Value]: NonNullable<Value[Name]> } {
  const given = Object.entries(value).filter(([, each]) => each !== undefined)
  return Object.fromEntries(given) as { [Name in keyof Value]: NonNullable<Value[Name]> }
}

function throwCallError(error: unknown): never {
  throw callErrorFrom(error)
}
