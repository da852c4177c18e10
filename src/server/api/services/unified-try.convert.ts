import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  TriedExchangeSchema,
  TriedRecordSchema,
  TryErrorSchema,
  TryUnifiedMappingResponseSchema,
} from '../../../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import type { FieldTrace, MappingFinding, TriedExchange, TriedMapping } from '../../../engine/unified/index.ts'
import type { Failure } from '../../../foundation/base/index.ts'
import { valueFrom } from '../messages/struct.ts'
import { mappingFindingToProto } from './unified-mapping.convert.ts'

/** Records whose fields are shown. */
const RECORDS_MAX = 20

/** What a mapping made of a call. */
export function triedMappingToProto(
  tried: TriedMapping,
  findings: readonly MappingFinding[],
): MessageInitShape<typeof TryUnifiedMappingResponseSchema> {
  const { outcome, failure, exchanges, unused, traces = [] } = tried
  return {
    outcome: outcomeOf(tried),
    ...(outcome === undefined ? {} : { status: outcome.status }),
    exchanges: exchanges.map(exchangeToProto),
    unusedExchanges: unused,
    ...(outcome?.kind === 'ok'
      ? {
          result: valueFrom(outcome.result),
          ignoredFilters: outcome.ignoredFilters.map((filter) => ({ ...filter })),
          warnings: outcome.warnings.map((warning) => ({ ...warning })),
        }
      : {}),
    records: traces.slice(0, RECORDS_MAX).map(recordToProto),
    ...errorOf(tried, failure),
    findings: findings.map(mappingFindingToProto),
  }
}

function outcomeOf({ outcome, failure }: TriedMapping): string {
  if (failure !== undefined) return 'failed'
  return outcome === undefined ? 'not_sent' : outcome.kind
}

function exchangeToProto({
  request,
  response,
  differences,
}: TriedExchange): MessageInitShape<typeof TriedExchangeSchema> {
  return {
    method: request.method,
    url: request.url,
    ...(request.body === undefined ? {} : { body: valueFrom(request.body) }),
    ...(response === undefined ? {} : { responseStatus: response.status }),
    ...(response?.body === undefined ? {} : { responseBody: valueFrom(response.body) }),
    differences: [...differences],
  }
}

function recordToProto(traces: readonly FieldTrace[]): MessageInitShape<typeof TriedRecordSchema> {
  return {
    fields: traces.map(({ field, expression, layer = '', lane, value, error = '' }) => ({
      field,
      expression,
      layer,
      lane,
      ...(value === undefined ? {} : { value: valueFrom(value) }),
      error,
    })),
  }
}

function errorOf(
  { outcome }: TriedMapping,
  failure: Failure | undefined,
): { readonly error?: MessageInitShape<typeof TryErrorSchema> } {
  if (failure !== undefined) {
    const fields = Object.fromEntries(failure.violations.map(({ field, description }) => [field, description]))
    return { error: { reason: failure.reason, message: failure.publicMessage, fields } }
  }
  if (outcome?.kind !== 'upstream_error') return {}
  return { error: { reason: 'UPSTREAM_ERROR', message: outcome.message } }
}
