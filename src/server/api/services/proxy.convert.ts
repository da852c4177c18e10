import type { MessageInitShape } from '@bufbuild/protobuf'
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt'
import type {
  CallPreviewSchema,
  OutcomePreviewSchema,
  RateLimitWaitSchema,
  RecordPageSchema,
  UpstreamRateLimitSchema,
} from '../../../../gen/patchbay/v1/proxy_pb.ts'
import type {
  CallRequest,
  CallResponseSchema,
  ListPagesRequest,
  PageChoice,
  SampleAnswer,
} from '../../../../gen/patchbay/v1/proxy_service_pb.ts'
import type {
  CallTarget,
  PageDelayed,
  PreviewRequest,
  ProxyRequest,
  RateLimitInfo,
  RecordsPage,
  RequestPreview,
  SampleOutcome,
  SentRequest,
  SuccessOutcome,
} from '../../../engine/proxy/index.ts'
import { suggestOneOf } from '../../../foundation/base/index.ts'
import { isJsonObject, type JsonObject, stringifyJson } from '../../../foundation/json/index.ts'
import { jsonFrom, structFrom, valueFrom, valueFromLarge, valuesFrom } from '../messages/struct.ts'
import type { Finding } from '../operation.ts'
import { findTextProblems, objectInText } from './values.convert.ts'

/** Check of a call: it has exactly one target. */
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

/** The requested call. */
export function callFromProto(request: CallRequest): PreviewRequest {
  const { page, sample } = request
  return {
    ...givenValues(request),
    target: targetOf(request),
    page: pageFromProto(page),
    sample: sampleFromProto(sample),
  }
}

/** The page of a list; absent stays absent. */
export function pageFromProto(page: PageChoice | undefined): ProxyRequest['page'] {
  return page && { limit: page.limit, cursor: page.nextCursor === '' ? undefined : page.nextCursor }
}

/** An answer to simulate; absent stays absent. */
export function sampleFromProto(sample: SampleAnswer | undefined): PreviewRequest['sample'] {
  return (
    sample && {
      status: sample.status ?? 200,
      headers: lowerCaseNames(sample.headers),
      body: jsonFrom(sample.body) ?? null,
    }
  )
}

/** Values of a list request that may be given as fields or together in `values_json`. */
const TEXT_VALUES = ['query', 'body', 'args', 'resources', 'state'] as const

/** Check of a list request: each value is given in one place. */
export function listFindings(request: ListPagesRequest): readonly Finding[] {
  const values = Object.keys(objectInText(request.valuesJson) ?? {})
  const unknown = values.filter((name) => !TEXT_VALUES.some((each) => each === name))
  const objects = values.filter((name) => name !== 'body')
  const given = objectInText(request.valuesJson)
  return [
    ...findTextProblems('values_json', request.valuesJson),
    ...unknown.map((name) =>
      finding(`values_json.${name}`, `is not a known value${suggestOneOf(name, TEXT_VALUES)}`, 'unknown_field'),
    ),
    ...objects
      .filter((name) => !unknown.includes(name) && !isJsonObject(given?.[name]))
      .map((name) => finding(`values_json.${name}`, 'must be a JSON object', 'type')),
    ...TEXT_VALUES.filter((name) => values.includes(name) && request[name] !== undefined).map((name) =>
      finding(name, 'cannot be given together with the same value in values_json', 'duplicate_field'),
    ),
  ]
}

/** The requested list, and the state to continue from. */
export function listFromProto(request: ListPagesRequest): {
  readonly asked: ProxyRequest
  readonly state: JsonObject | undefined
} {
  const { resource, method, limit } = request
  const target = namedTarget(resource, method === '' ? 'list' : method)
  // `listFindings` has checked the types in the text.
  const { state = request.state, ...texts } = (objectInText(request.valuesJson) ?? {}) as ListValues
  return {
    asked: { ...givenValues(request), ...texts, target, page: { limit } },
    state: state as JsonObject | undefined,
  }
}

interface ListValues extends Pick<ProxyRequest, 'query' | 'body' | 'args' | 'resources'> {
  readonly state?: JsonObject
}

function givenValues(request: CallRequest | ListPagesRequest) {
  const { id, query, body, headers, args, resources, previousRunDate } = request
  // protobuf's JSON type is ours, and validation has rejected values that ours does not allow.
  const objects = { query, args, resources } as { readonly [name in 'query' | 'args' | 'resources']?: JsonObject }
  return { id, ...objects, body: jsonFrom(body), headers, previousRunDate: textOf(previousRunDate) }
}

function targetOf({ resource, method, rawTarget }: CallRequest): CallTarget {
  return rawTarget === undefined
    ? namedTarget(resource, method)
    : { kind: 'path', verb: rawTarget.verb.toUpperCase(), path: rawTarget.path }
}

/** The answer of a successful call. */
export async function successToProto(
  outcome: SuccessOutcome,
  includeRaw: boolean,
): Promise<MessageInitShape<typeof CallResponseSchema>> {
  const { status, headers, result, page, rateLimit, body } = outcome
  return {
    status,
    headers: { ...headers },
    result: await valueFromLarge(result),
    nextCursor: page?.nextCursor ?? undefined,
    prevCursor: page?.previousCursor,
    stopReason: page?.stopReason,
    rateLimit: rateLimitToProto(rateLimit),
    raw: includeRaw ? await valueFromLarge(body) : undefined,
  }
}

/** A page or a wait, as the messages of streams of pages hold it. */
export interface PageStepInit {
  readonly step:
    | { readonly case: 'page'; readonly value: MessageInitShape<typeof RecordPageSchema> }
    | { readonly case: 'waiting'; readonly value: MessageInitShape<typeof RateLimitWaitSchema> }
}

/** A page or a wait, as one message of a stream. */
export async function stepToProto(step: RecordsPage | PageDelayed, isText: boolean): Promise<PageStepInit> {
  const state =
    step.state === null ? {} : isText ? { stateJson: JSON.stringify(step.state) } : { state: structFrom(step.state) }
  const rateLimit = rateLimitToProto(step.rateLimit)
  if (step.kind === 'rate_limited')
    return {
      step: { case: 'waiting', value: { seconds: step.retryAfterSeconds, pageNumber: step.page, rateLimit, ...state } },
    }
  const { page: number, stopReason, total } = step
  const records = isText
    ? { recordsJson: String(await stringifyJson(step.records)) }
    : { records: await valuesFrom(step.records) }
  return { step: { case: 'page', value: { number, stopReason, rateLimit, total, ...records, ...state } } }
}

/** The result of a dry run. */
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

/** What a third party says about its rate limit; absent stays absent. */
export function rateLimitToProto(
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

/** The resource name of actions of the definition. */
const ACTION_RESOURCE = '_'

/** A method of a resource, or with `_` for the resource a named action. */
export function namedTarget(resource: string, method: string): CallTarget {
  return resource === ACTION_RESOURCE ? { kind: 'action', action: method } : { kind: 'method', resource, method }
}

/** Resource and method of a target, for error metadata; a path has none. */
export function namesOf(target: CallTarget): Readonly<Record<string, string>> {
  switch (target.kind) {
    case 'method':
      return { resource: target.resource, method: target.method }
    case 'action':
      return { resource: ACTION_RESOURCE, method: target.action }
    case 'path':
    case 'verification':
    case 'subscription':
      return {}
  }
}
