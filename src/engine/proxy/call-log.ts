import { assertNever, currentRequestId, Failure, newId } from '../../foundation/base/index.ts'
import type { EgressRequest, EgressResponse, RequestTimings } from '../../foundation/egress/index.ts'
import { type Redactor, SECRET_MASK } from '../../foundation/redaction/index.ts'
import { decodeUtf8 } from '../formats/response/response.ts'
import type { AuthorizedRequest } from './build-request.ts'
import type { CallContext } from './call-context.ts'
import type { CallDependencies } from './dependencies.ts'
import type { CallClass, CallLog, LoggedContent } from './logged-call.ts'
import type { ClassifiedOutcome } from './outcome.ts'
import type { AccountAccess, CallCause } from './request.ts'

/** The account with what its next requests are sent for. */
export function withCause(access: AccountAccess, kind: CallCause['kind'], id?: string): AccountAccess {
  return { ...access, cause: { kind, id } }
}

/** Content of a body that is kept, in characters. */
const BODY_LENGTH_MAX = 16 * 1024
/** Bytes of a body that are read for it: secrets are masked before it is cut. */
const BODY_BYTES_READ = 4 * BODY_LENGTH_MAX
const URL_LENGTH_MAX = 2_048
const MESSAGE_LENGTH_MAX = 500
const REQUEST_ID_LENGTH_MAX = 128

/** Headers by which third parties name a request, the most telling first. */
const REQUEST_ID_HEADERS = [
  'x-request-id',
  'request-id',
  'x-amzn-requestid',
  'x-amz-request-id',
  'x-ms-request-id',
  'x-github-request-id',
  'x-correlation-id',
  'x-trace-id',
  'cf-ray',
]

/** What a log entry says of the request before it is sent. */
interface EntryStart {
  readonly account: Pick<AccountAccess, 'environmentId' | 'environmentIntegrationId' | 'integrationName' | 'cause'> & {
    readonly id?: string | undefined
  }
  readonly resource: string
  readonly method: string
  readonly attempt: number
  /** @param url without authorization parameters */
  readonly request: Pick<EgressRequest, 'method' | 'url' | 'headers' | 'body'>
  readonly redaction: Pick<Redactor, 'redactCut' | 'redactMap'>
  readonly keeps: ContentRule
}

/**
 * Which headers and bodies may be kept: of failures and of sampled successes; of failures, where answers are credentials that
 * nothing knows yet; or of failures the answer alone, where the request is made of credentials too.
 */
type ContentRule = 'sampled' | 'failures' | 'failed_answers'

/** The entry of a request that is under way; `end` or `fail` is the last call, and writes it. */
export class LogEntry {
  readonly timings: RequestTimings = {}
  /** Known as soon as the request is answered. */
  id = ''
  readonly #log: CallLog
  readonly #start: EntryStart
  readonly #requestId = currentRequestId()
  readonly #startedAt = new Date()
  readonly #startedMs = performance.now()
  #totalMs = 0
  #response: Partial<EgressResponse> | undefined

  constructor(log: CallLog, start: EntryStart) {
    this.#log = log
    this.#start = start
  }

  /** Notes the answer. A streamed one has no body yet. */
  answered(response: Pick<EgressResponse, 'status' | 'headers'> & { readonly body?: unknown }): string {
    const { status, headers, body } = response
    this.#stop()
    this.#response = { status, headers, ...(body instanceof Uint8Array ? { body } : {}) }
    return this.id
  }

  /** Notes what was read of the body of a streamed answer. */
  received(body: Uint8Array): void {
    this.#response = { ...this.#response, body }
  }

  end(outcome: ClassifiedOutcome): void {
    switch (outcome.kind) {
      case 'success':
      case 'stream':
        this.succeed()
        break
      case 'rate_limited':
        this.#write('rate_limited', undefined)
        break
      case 'upstream_error':
        this.#write('error', outcome.message)
        break
      default:
        assertNever(outcome)
    }
  }

  succeed(): void {
    this.#write('success', undefined)
  }

  /** @returns the id of the entry */
  fail(error: unknown): string {
    if (this.id === '') this.#stop()
    const failure = error instanceof Failure ? error : undefined
    this.#write(classOfFailure(failure), failure?.publicMessage)
    return this.id
  }

  #stop(): void {
    this.id = newId()
    this.#totalMs = performance.now() - this.#startedMs
  }

  #write(callClass: CallClass, errorMessage: string | undefined): void {
    const { account, resource, method, attempt, request, redaction, keeps } = this.#start
    const { environmentId, environmentIntegrationId, integrationName, id, cause = { kind: 'call' } } = account
    if (environmentId === undefined) return
    const { remoteAddress: _peer, ...phases } = this.timings
    const { status, headers = {}, body } = this.#response ?? {}
    const upstreamRequestId = REQUEST_ID_HEADERS.map((name) => headers[name]).find((value) => value !== undefined)
    const isKept = callClass === 'success' ? keeps === 'sampled' && this.#log.isSampled() : true
    this.#log.record({
      ...phases,
      id: this.id,
      environmentId,
      integratedAccountId: id,
      environmentIntegrationId,
      integrationName,
      resource,
      method,
      httpMethod: request.method,
      url: redaction.redactCut(withoutFragment(request.url), URL_LENGTH_MAX),
      status,
      class: callClass,
      errorMessage: errorMessage && redaction.redactCut(errorMessage, MESSAGE_LENGTH_MAX),
      startedAt: this.#startedAt,
      totalMs: this.#totalMs,
      attempt,
      bytesSent: bytesOf(request.body),
      bytesReceived: body?.byteLength ?? Number(headers['content-length'] ?? 0),
      upstreamRequestId: upstreamRequestId && redaction.redactCut(upstreamRequestId, REQUEST_ID_LENGTH_MAX),
      cause,
      requestId: this.#requestId,
      content: isKept ? this.#content(headers, body) : undefined,
    })
  }

  #content(headers: Readonly<Record<string, string>>, body: Uint8Array | undefined): LoggedContent {
    const { request, redaction, keeps } = this.#start
    const isWhole = keeps !== 'failed_answers'
    return {
      requestHeaders: isWhole ? redaction.redactMap(withoutCredentials(request.headers)) : {},
      requestBody: isWhole ? redaction.redactCut(textOf(request.body), BODY_LENGTH_MAX) : '',
      responseHeaders: redaction.redactMap(withoutCredentials(headers)),
      responseBody: redaction.redactCut(textOf(body), BODY_LENGTH_MAX),
    }
  }
}

/** Begins the entry of one attempt of a call; `undefined` where nothing is logged. */
export function openLogEntry(
  { callLog, redaction }: Pick<CallDependencies, 'callLog' | 'redaction'>,
  { access, target, request: asked }: CallContext,
  { method, publicUrl: url, headers, body }: Pick<AuthorizedRequest, 'method' | 'publicUrl' | 'headers' | 'body'>,
  attempt: number,
): LogEntry | undefined {
  if (callLog === undefined) return undefined
  const { resource, method: name } = target.method
  const request = { method, url, headers, ...(body === undefined ? {} : { body }) }
  return new LogEntry(callLog, {
    account: access,
    resource,
    method: name,
    attempt,
    request,
    redaction,
    keeps: asked.target.kind === 'method' || asked.target.kind === 'path' ? 'sampled' : 'failures',
  })
}

/**
 * Sends a request about tokens, and logs it without what such requests and their answers consist of: secrets. Only of an error
 * the answer is kept.
 *
 * @param onLogged called with the id of the entry
 */
export async function sendLogged(
  callLog: CallLog | undefined,
  account: EntryStart['account'],
  redaction: EntryStart['redaction'],
  request: EgressRequest,
  send: (request: EgressRequest) => Promise<EgressResponse>,
  onLogged: (logId: string) => void,
): Promise<EgressResponse> {
  if (callLog === undefined) return await send(request)
  const [url = ''] = request.url.split('?', 1)
  const start = { account, resource: '', method: '', attempt: 1, request: { ...request, url }, redaction } as const
  const entry = new LogEntry(callLog, { ...start, keeps: 'failed_answers' })
  try {
    const response = await send({ ...request, timings: entry.timings })
    onLogged(entry.answered(response))
    if (response.status >= 400) entry.fail(new Failure('UPSTREAM_ERROR', `the third party answered ${response.status}`))
    else entry.succeed()
    return response
  } catch (error) {
    if (entry.id === '') onLogged(entry.fail(error))
    throw error
  }
}

function classOfFailure(failure: Failure | undefined): CallClass {
  switch (failure?.reason) {
    case 'EGRESS_BLOCKED':
      return 'blocked'
    case 'DEADLINE_EXCEEDED':
      return 'timeout'
    case 'UPSTREAM_UNREACHABLE':
      return 'network_error'
    case 'UPSTREAM_INVALID_RESPONSE':
      return 'invalid_response'
    case 'CANCELLED':
      return 'cancelled'
    default:
      return 'error'
  }
}

/** Headers that are credentials whatever they contain. */
const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie', 'x-api-key'])

function withoutCredentials(headers: Readonly<Record<string, string>>): Record<string, string> {
  const masked = Object.entries(headers).map(([name, value]): [string, string] => [
    name,
    CREDENTIAL_HEADERS.has(name.toLowerCase()) ? SECRET_MASK : value,
  ])
  return Object.fromEntries(masked)
}

function withoutFragment(url: string): string {
  return url.split('#', 1)[0] ?? ''
}

function bytesOf(body: EgressRequest['body']): number {
  return body === undefined ? 0 : Buffer.byteLength(body)
}

/** The beginning of a body as text; what is no text has replacement characters. */
function textOf(body: EgressRequest['body']): string {
  if (body === undefined) return ''
  return typeof body === 'string' ? body.slice(0, BODY_BYTES_READ) : decodeUtf8(body.subarray(0, BODY_BYTES_READ))
}
