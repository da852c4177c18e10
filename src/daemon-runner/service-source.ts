import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { RecordPage } from '../../gen/patchbay/v1/proxy_pb.ts'
import type { ListPagesRequestSchema, ListPagesResponse } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import {
  backoffMs,
  type Clock,
  Failure,
  JSON_NESTING_MAX,
  type Json,
  type JsonObject,
  parseJson,
} from '../base/index.ts'
import { ServerUnavailable } from '../client/index.ts'
import type { ListingRequest, PageSource, SourcePage } from '../syncs/index.ts'
import type { DaemonRun } from './daemon-run.ts'
import { SERVICE_RETRY_POLICY, type ServiceClients } from './service.ts'
import { serviceErrorFrom } from './service-errors.ts'

/** A record that is a whole answer is in a list here. */
const PAGE_NESTING_MAX = JSON_NESTING_MAX + 1

/** What reading through the service needs. */
export interface ServiceSourceDeps {
  readonly service: Pick<ServiceClients, 'proxy'>
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
}

/**
 * Pages as the service reads them. While it is away the listing goes on where it was, for as long as the signal lets it: a
 * service that restarts is not an error of the run.
 */
export function createServiceSource(deps: ServiceSourceDeps, run: DaemonRun): PageSource {
  const { idPath, parentPaths, integratedAccountId } = run
  return {
    idPath,
    parentPaths,
    async *pages(request, state, signal) {
      let from = state
      for (let failures = 1; ; failures++) {
        try {
          for await (const page of listPages(deps, listPagesRequest(integratedAccountId, request, from), signal)) {
            yield page
            if (page.next === undefined) return
            from = page.next
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

async function* listPages(
  { service }: ServiceSourceDeps,
  request: MessageInitShape<typeof ListPagesRequestSchema>,
  signal: AbortSignal,
): AsyncGenerator<SourcePage> {
  try {
    for await (const { step } of service.proxy.listPages(request, { signal })) yield pageFromStep(step)
  } catch (error) {
    throw serviceErrorFrom(error)
  }
  throw new ServerUnavailable('the service ended a list before its last page', 0, undefined)
}

/** @throws Failure UPSTREAM_RATE_LIMITED for a wait: the engine decides whether to sit it out or to give the run back */
function pageFromStep(step: ListPagesResponse['step']): SourcePage {
  switch (step.case) {
    case 'page':
      return pageFromProto(step.value)
    case 'waiting':
      throw new Failure('UPSTREAM_RATE_LIMITED', 'the third party asks to wait', {
        retryAfterSeconds: step.value.seconds,
      })
    default:
      throw new Failure('UPSTREAM_INVALID_RESPONSE', 'the service answered with a step that this daemon does not know')
  }
}

function pageFromProto({ recordsJson, stateJson, stopReason, total }: RecordPage): SourcePage {
  const next = stateJson === '' ? undefined : (parseJson(stateJson) as JsonObject)
  return { records: parseJson(recordsJson, PAGE_NESTING_MAX) as readonly Json[], next, stopReason, total }
}

function listPagesRequest(
  integratedAccountId: string,
  { resource, method, id, query, args, resources, previousRunDate }: ListingRequest,
  state: JsonObject | undefined,
): MessageInitShape<typeof ListPagesRequestSchema> {
  return {
    integratedAccountId,
    resource,
    method,
    asJsonText: true,
    valuesJson: JSON.stringify({ query, args, resources, state }),
    ...(id === undefined ? {} : { id }),
    ...(previousRunDate === undefined ? {} : { previousRunDate: timestampFromDate(new Date(previousRunDate)) }),
  }
}
