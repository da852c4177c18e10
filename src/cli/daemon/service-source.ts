import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { RecordPage } from '../../../gen/patchbay/v1/proxy_pb.ts'
import type { ListPagesRequestSchema, ListPagesResponse } from '../../../gen/patchbay/v1/proxy_service_pb.ts'
import type { UnifiedServiceListPagesRequestSchema } from '../../../gen/patchbay/v1/unified_service_pb.ts'
import { backoffMs, type Clock, Failure } from '../../foundation/base/index.ts'
import { JSON_NESTING_MAX, type Json, type JsonObject, parseJson } from '../../foundation/json/index.ts'
import {
  isUnifiedName,
  type ListingRequest,
  type PageOutcome,
  type PageSource,
  strictQuery,
  unifiedRefOf,
  upstreamErrorOutcome,
} from '../../sync/jobs/index.ts'
import { callErrorFrom, hasReason, ServerUnavailable } from '../client/errors.ts'
import type { DaemonRun } from './daemon-run.ts'
import { SERVICE_RETRY_POLICY, type ServiceClients } from './service.ts'

/** One more than a record: pages are lists of records. */
const PAGE_NESTING_MAX = JSON_NESTING_MAX + 1

/** What a source on the service needs. */
export interface ServiceSourceDeps {
  readonly service: Pick<ServiceClients, 'proxy' | 'unified'>
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
}

/**
 * Pages as the service reads them. While the service is unavailable the listing is retried with backoff from the page after
 * the last one, until the signal aborts: a restart of the service is no error of the run.
 */
export function createServiceSource(deps: ServiceSourceDeps, run: DaemonRun): PageSource {
  const { idPath, parentPaths } = run
  return {
    idPath,
    parentPaths,
    async *pages(request, state, signal) {
      let next = state
      for (let failures = 1; ; failures++) {
        try {
          for await (const outcome of readPages(openList(deps, run, request, next, signal))) {
            yield outcome
            if (outcome.kind !== 'page' || outcome.state === null) return
            next = outcome.state
            failures = 0
          }
        } catch (error) {
          if (!(error instanceof ServerUnavailable) || signal.aborted) throw error
          await deps.clock.sleep(
            Math.max(error.afterMs, backoffMs(SERVICE_RETRY_POLICY, failures, deps.random)),
            signal,
          )
          signal.throwIfAborted()
        }
      }
    },
  }
}

/** The list, mapped by the service where the resource is a unified one. */
function openList(
  { service }: ServiceSourceDeps,
  run: DaemonRun,
  request: ListingRequest,
  state: JsonObject | null,
  signal: AbortSignal,
): AsyncIterable<Pick<ListPagesResponse, 'step'>> {
  return isUnifiedName(request.resource)
    ? service.unified.listPages(unifiedListRequest(run, request, state), { signal })
    : service.proxy.listPages(listPagesRequest(run, request, state), { signal })
}

/** @throws Failure with the reason of the service; ServerUnavailable */
async function* readPages(list: AsyncIterable<Pick<ListPagesResponse, 'step'>>): AsyncGenerator<PageOutcome> {
  try {
    for await (const { step } of list) yield toPageOutcome(step)
  } catch (cause) {
    const error = callErrorFrom(cause)
    if (!hasReason(error, 'UPSTREAM_ERROR')) throw error
    yield upstreamErrorFrom(error)
    return
  }
  throw new ServerUnavailable('the service ended a list before its last page', 0, undefined)
}

/** The error response of the third party, with its status and the action of the definition as the service reports them. */
function upstreamErrorFrom({ publicMessage, metadata, retryAfterSeconds }: Failure): PageOutcome {
  const action = UPSTREAM_ACTIONS.find((each) => each === metadata.upstream_action)
  const { upstream_request: request, log_id: logId } = metadata
  return upstreamErrorOutcome(
    publicMessage,
    Number(metadata.upstream_status),
    action,
    request,
    logId,
    retryAfterSeconds,
  )
}

/** The actions that the service reports; any other is implied by the status. */
const UPSTREAM_ACTIONS = ['retry', 'needs_reauth', 'restart'] as const

function toPageOutcome(step: ListPagesResponse['step']): PageOutcome {
  switch (step.case) {
    case 'page':
      return pageFromProto(step.value)
    case 'waiting':
      return { kind: 'wait', afterMs: step.value.seconds * 1000 }
    default:
      throw new Failure('UPSTREAM_INVALID_RESPONSE', 'the service answered with a step that this daemon does not know')
  }
}

function pageFromProto({ number, recordsJson, stateJson, stopReason, total }: RecordPage): PageOutcome {
  return {
    kind: 'page',
    page: number,
    records: parseJson(recordsJson, PAGE_NESTING_MAX) as readonly Json[],
    state: stateJson === '' ? null : (parseJson(stateJson) as JsonObject),
    stopReason,
    total,
  }
}

function listPagesRequest(
  { id: syncJobRunId, integratedAccountId }: DaemonRun,
  { resource, method, id, query, args, resources, previousRunDate }: ListingRequest,
  state: JsonObject | null,
): MessageInitShape<typeof ListPagesRequestSchema> {
  return {
    integratedAccountId,
    syncJobRunId,
    resource,
    method,
    asJsonText: true,
    valuesJson: JSON.stringify({ query, args, resources, ...(state === null ? {} : { state }) }),
    ...(id === undefined ? {} : { id }),
    ...(previousRunDate === undefined ? {} : { previousRunDate: timestampFromDate(new Date(previousRunDate)) }),
  }
}

function unifiedListRequest(
  { id: syncJobRunId, integratedAccountId }: DaemonRun,
  { resource, method, id, query, previousRunDate }: ListingRequest,
  state: JsonObject | null,
): MessageInitShape<typeof UnifiedServiceListPagesRequestSchema> {
  return {
    integratedAccountId,
    syncJobRunId,
    ...unifiedRefOf({ resource, method }),
    asJsonText: true,
    valuesJson: JSON.stringify({ query: strictQuery(query), ...(state === null ? {} : { state }) }),
    ...(id === undefined ? {} : { id }),
    ...(previousRunDate === undefined ? {} : { previousRunDate: timestampFromDate(new Date(previousRunDate)) }),
  }
}
