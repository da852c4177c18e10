import type { MessageInitShape } from '@bufbuild/protobuf'
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt'
import type {
  CallPreviewSchema,
  OutcomePreviewSchema,
  UpstreamRateLimitSchema,
} from '../../../gen/patchbay/v1/proxy_pb.ts'
import type {
  CallRequest,
  CallResponseSchema,
  ListPagesRequest,
  ListPagesResponseSchema,
} from '../../../gen/patchbay/v1/proxy_service_pb.ts'
import type { JsonObject } from '../../base/index.ts'
import type {
  CallTarget,
  PageDelayed,
  PageReached,
  PreviewRequest,
  ProxyRequest,
  RateLimitInfo,
  RequestPreview,
  SampleOutcome,
  SentRequest,
  SuccessOutcome,
} from '../../proxy/index.ts'
import type { Finding } from '../service.ts'
import { namedTarget } from './call-target.ts'
import { jsonFrom, structFrom, valueFrom } from './struct.ts'

/** What must hold of a call beside its fields: it has exactly one target. */
export function callFindings({ resource, method, rawTarget, dryRun, sample }: CallRequest): readonly Finding[] {
  const findings: Finding[] = []
  const isNamed = resource !== '' || method !== ''
  if (isNamed && rawTarget !== undefined)
    findings.push(finding('raw_target', 'cannot be given together with resource and method', 'oneof'))
  else if (rawTarget === undefined && (resource === '' || method === ''))
    findings.push(
      finding(
        resource === '' ? 'resource' : 'method',
        'is needed: name resource and method, or raw_target',
        'required',
      ),
    )
  if (sample !== undefined && !dryRun)
    findings.push(finding('sample', 'has a meaning in a dry run only: set dry_run', 'dry_run'))
  return findings
}

/** The call that is asked for. */
export function callFromProto(request: CallRequest): PreviewRequest {
  const { page, sample } = request
  return {
    ...givenValues(request),
    target: targetOf(request),
    page: page && { limit: page.limit, cursor: page.nextCursor === '' ? undefined : page.nextCursor },
    sample: sample && {
      status: sample.status ?? 200,
      headers: lowerCaseNames(sample.headers),
      body: jsonFrom(sample.body) ?? null,
    },
  }
}

/** The list that is asked for. */
export function listFromProto(request: ListPagesRequest): ProxyRequest {
  const { resource, method, limit } = request
  return { ...givenValues(request), target: namedTarget(resource, method === '' ? 'list' : method), page: { limit } }
}

function givenValues(request: CallRequest | ListPagesRequest) {
  const { id, query, body, headers, args, resources, previousRunDate } = request
  // protobuf's JSON type is ours, and it was found to hold nothing that ours does not.
  const objects = { query, args, resources } as { readonly [name in 'query' | 'args' | 'resources']?: JsonObject }
  return { id, ...objects, body: jsonFrom(body), headers, previousRunDate: textOf(previousRunDate) }
}

function targetOf({ resource, method, rawTarget }: CallRequest): CallTarget {
  return rawTarget === undefined
    ? namedTarget(resource, method)
    : { kind: 'path', verb: rawTarget.verb.toUpperCase(), path: rawTarget.path }
}

/** What a call came to. */
export function successToProto(
  outcome: SuccessOutcome,
  includeRaw: boolean,
): MessageInitShape<typeof CallResponseSchema> {
  const { status, headers, result, page, rateLimit, body } = outcome
  return {
    status,
    headers: { ...headers },
    result: valueFrom(result),
    nextCursor: page?.nextCursor ?? undefined,
    prevCursor: page?.previousCursor,
    stopReason: page?.stopReason,
    rateLimit: rateLimitToProto(rateLimit),
    raw: includeRaw ? valueFrom(body) : undefined,
  }
}

/** A page or a wait, as one message of a stream. */
export function stepToProto(step: PageReached | PageDelayed): MessageInitShape<typeof ListPagesResponseSchema> {
  const state = step.state === null ? undefined : structFrom(step.state)
  const rateLimit = rateLimitToProto(step.rateLimit)
  if (step.kind === 'rate_limited')
    return {
      step: { case: 'waiting', value: { seconds: step.retryAfterSeconds, pageNumber: step.page, state, rateLimit } },
    }
  const { page: number, stopReason, total } = step
  const records = step.records.map(valueFrom)
  return { step: { case: 'page', value: { number, records, state, stopReason, rateLimit, total } } }
}

/** What a call would do. */
export function previewToProto(preview: RequestPreview): MessageInitShape<typeof CallPreviewSchema> {
  const { isWrite, attemptsMax, paging, outcome, error } = preview
  return {
    ...sentToProto(preview),
    isWrite,
    attemptsMax,
    paging: paging && {
      format: paging.format ?? undefined,
      limit: paging.limit,
      stops: paging.stops.map((stop) => ({ ...stop })),
    },
    outcome: outcome && sampleOutcomeToProto(outcome),
    error: error && { reason: error.reason, message: error.publicMessage },
  }
}

function sampleOutcomeToProto(outcome: SampleOutcome): MessageInitShape<typeof OutcomePreviewSchema> {
  const { kind, result, recordCount, stopReason, next } = outcome
  return { kind, result: valueFrom(result), recordCount, stopReason, next: next && sentToProto(next) }
}

function sentToProto({ method, url, headers, body }: SentRequest) {
  return { method, url, headers: { ...headers }, body }
}

function rateLimitToProto(
  info: RateLimitInfo | undefined,
): MessageInitShape<typeof UpstreamRateLimitSchema> | undefined {
  return info && { limit: info.limit, remaining: info.remaining, reset: info.reset }
}

function textOf(time: Timestamp | undefined): string | undefined {
  return time && timestampDate(time).toISOString()
}

function lowerCaseNames(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

function finding(field: string, description: string, rule: string): Finding {
  return { field, description, rule }
}
