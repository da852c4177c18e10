import type { MessageInitShape } from '@bufbuild/protobuf'
import type { UnifiedPreviewSchema } from '../../../../gen/patchbay/v1/unified_pb.ts'
import type {
  UnifiedServiceCallRequest,
  UnifiedServiceCallResponseSchema,
  UnifiedServiceListPagesRequest,
} from '../../../../gen/patchbay/v1/unified_service_pb.ts'
import {
  checkUnifiedQuery,
  readUnifiedQuery,
  type UnifiedPreview,
  type UnifiedPreviewRequest,
  type UnifiedRequest,
  type UnifiedSuccess,
} from '../../../engine/unified/index.ts'
import { suggestOneOf } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import type { UnifiedMethodRef } from '../../../platform/unified-config/index.ts'
import { valueFrom, valueFromLarge } from '../messages/struct.ts'
import type { Finding } from '../operation.ts'
import { pageFromProto, previewToProto, rateLimitToProto, sampleFromProto } from './proxy.convert.ts'
import { dateFrom, findTextProblems, objectInText } from './values.convert.ts'

/** Check of a call: its query, and that its page size is given once. */
export function unifiedCallFindings({ query, page, dryRun, sample }: UnifiedServiceCallRequest): readonly Finding[] {
  const { violations, query: read } = checkUnifiedQuery(objectOf(query), QUERY_PATH)
  return [
    ...violations,
    ...(read.limit !== undefined && page?.limit !== undefined
      ? [finding('page.limit', 'cannot be given together with query.limit', 'duplicate_field')]
      : []),
    ...(sample !== undefined && !dryRun
      ? [finding('sample', 'has a meaning in a dry run only: set dry_run', 'dry_run')]
      : []),
  ]
}

/** The requested call. */
export function unifiedCallFromProto(message: UnifiedServiceCallRequest): UnifiedPreviewRequest {
  const { id, query, body, remoteFields, page, sample } = message
  const { limit, ...asked } = readUnifiedQuery(objectOf(query), QUERY_PATH)
  const choice = pageFromProto(page)
  return {
    ...asked,
    id,
    page: { limit: choice?.limit ?? limit, cursor: choice?.cursor },
    // protobuf's JSON type is ours, and validation has rejected values that ours does not allow.
    body: body as JsonObject | undefined,
    remoteFields: remoteFields as JsonObject | undefined,
    sample: sampleFromProto(sample),
  }
}

/** The method that a message names. */
export function unifiedRefOf({
  model,
  resource,
  method,
}: UnifiedServiceCallRequest | UnifiedServiceListPagesRequest): UnifiedMethodRef {
  return { model, resource, method: method === '' ? 'list' : method }
}

const QUERY_PATH = 'query.'

/** Values of a list request that may be given as fields or together in `values_json`. */
const TEXT_VALUES = ['query', 'state'] as const

/** Check of a list request: its query, and that each value is given in one place. */
export function unifiedListFindings(request: UnifiedServiceListPagesRequest): readonly Finding[] {
  const given = objectInText(request.valuesJson) ?? {}
  const { query } = listValuesOf(request)
  const problems = Object.entries(given).flatMap(([name, value]) => {
    const field = `values_json.${name}`
    const known = TEXT_VALUES.find((each) => each === name)
    if (known === undefined)
      return [finding(field, `is not a known value${suggestOneOf(name, TEXT_VALUES)}`, 'unknown_field')]
    if (!isJsonObject(value)) return [finding(field, 'must be a JSON object', 'type')]
    if (request[known] === undefined) return []
    return [finding(name, 'cannot be given together with the same value in values_json', 'duplicate_field')]
  })
  return [
    ...findTextProblems('values_json', request.valuesJson),
    ...problems,
    ...checkUnifiedQuery(objectOf(query), QUERY_PATH).violations,
  ]
}

/** The requested list, and the state to continue from. */
export function unifiedListFromProto(request: UnifiedServiceListPagesRequest): {
  readonly asked: UnifiedRequest
  readonly state: JsonObject | undefined
  /** RFC 3339. */
  readonly since: string | undefined
} {
  const { query, state } = listValuesOf(request)
  const { limit, ...asked } = readUnifiedQuery(objectOf(query), QUERY_PATH)
  return {
    asked: { ...asked, id: request.id, page: { limit: request.limit ?? limit } },
    state: objectOrNone(state),
    since: dateFrom(request.previousRunDate)?.toISOString(),
  }
}

function listValuesOf({ query, state, valuesJson }: UnifiedServiceListPagesRequest): {
  readonly query?: Json | undefined
  readonly state?: Json | undefined
} {
  // protobuf's JSON type is ours, and validation has rejected values that ours does not allow.
  return { query, state, ...objectInText(valuesJson) } as { readonly query?: Json; readonly state?: Json }
}

function objectOf(value: unknown): JsonObject {
  return objectOrNone(value) ?? {}
}

function objectOrNone(value: unknown): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined
}

/** The answer of a successful call. */
export async function unifiedSuccessToProto(
  outcome: UnifiedSuccess,
  includeRaw: boolean,
): Promise<MessageInitShape<typeof UnifiedServiceCallResponseSchema>> {
  const { status, result, page, isPartial, ignoredFilters, warnings, rateLimit, raw } = outcome
  return {
    status,
    result: await valueFromLarge(result),
    isPartial,
    nextCursor: page?.nextCursor ?? undefined,
    prevCursor: page?.previousCursor,
    stopReason: page?.stopReason,
    ignoredFilters: ignoredFilters.map((filter) => ({ ...filter })),
    warnings: warnings.map((warning) => ({ ...warning })),
    rateLimit: rateLimitToProto(rateLimit),
    raw: includeRaw ? await valueFromLarge(raw) : undefined,
  }
}

/** The result of a dry run. */
export function unifiedPreviewToProto(preview: UnifiedPreview): MessageInitShape<typeof UnifiedPreviewSchema> {
  const { ignoredFilters, warnings, skippedSteps, mapped } = preview
  return {
    call: previewToProto(preview),
    mapped: mapped === undefined ? undefined : valueFrom(mapped),
    ignoredFilters: ignoredFilters.map((filter) => ({ ...filter })),
    warnings: warnings.map((warning) => ({ ...warning })),
    skippedSteps: [...skippedSteps],
  }
}

function finding(field: string, description: string, rule: string): Finding {
  return { field, description, rule }
}
