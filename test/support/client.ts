import { type DescMethodUnary, fromBinary, fromJson, getOption, toBinary, toJson } from '@bufbuild/protobuf'
import { credentials, Client as GrpcChannel, status as grpcStatus, Metadata, type ServiceError } from '@grpc/grpc-js'
import { http } from '../../gen/google/api/annotations_pb.ts'
import { StatusSchema } from '../../gen/google/rpc/status_pb.ts'
import { isJsonObject, type Json, type JsonObject } from '../../src/foundation/json/index.ts'
import { type CallError, callErrorFromDetails } from './call-error.ts'

/** The three protocols every operation speaks. */
export type Protocol = 'grpc' | 'connect' | 'rest'

/** All of them. */
export const PROTOCOLS: readonly Protocol[] = ['grpc', 'connect', 'rest']

/** The protocols that carry JSON: only they can send an unknown field or a value of the wrong type. */
export const JSON_PROTOCOLS: readonly Protocol[] = ['connect', 'rest']

/** The outcome of a call: the response as JSON with the contract's field names, or the error. */
export type CallOutcome =
  | { readonly ok: true; readonly json: JsonObject; readonly headers: ReadonlyMap<string, string> }
  | { readonly ok: false; readonly error: CallError; readonly headers: ReadonlyMap<string, string> }

/** The response of a successful call. Lists and deletions have no id and no etag; a test that reads them fails. */
interface Answer extends JsonObject {
  readonly id: string
  readonly etag: string
}

/** The caller's token and headers. */
export interface Sender {
  /** Absent: no authorization header at all. */
  readonly token?: string | undefined
  /** The header by which a team token selects an environment. */
  readonly environment?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A client of one protocol. Requests are JSON with the contract's field names; the protocol encodes them. */
export interface Client {
  readonly wire: Protocol
  send(method: DescMethodUnary, request: JsonObject, also?: Sender): Promise<CallOutcome>
  /** Like `send`, for a call that must succeed; throws when it does not. */
  ok(method: DescMethodUnary, request: JsonObject, also?: Sender): Promise<Answer>
  /** Like `send`, for a call that must fail; throws when it succeeds. */
  callError(method: DescMethodUnary, request: JsonObject, also?: Sender): Promise<CallError>
  close(): void
}

/** A client of one protocol that sends as `sender` unless a call says otherwise. */
export function createClient(wire: Protocol, baseUrl: string, sender: Sender): Client {
  const transport =
    wire === 'grpc' ? grpcTransport(baseUrl) : wire === 'connect' ? connectTransport(baseUrl) : restTransport(baseUrl)
  const send: Client['send'] = (method, request, also) =>
    transport.send(method, request, headersOf({ ...sender, ...also, headers: { ...sender.headers, ...also?.headers } }))
  return {
    wire,
    send,
    async ok(method, request, also) {
      const outcome = await send(method, request, also)
      if (!outcome.ok) throw new Error(`${wire} ${method.name} failed: ${JSON.stringify(outcome.error)}`)
      return outcome.json as Answer
    },
    async callError(method, request, also) {
      const outcome = await send(method, request, also)
      if (outcome.ok) throw new Error(`${wire} ${method.name} did not fail: ${JSON.stringify(outcome.json)}`)
      return outcome.error
    },
    close: transport.close,
  }
}

interface Transport {
  send(method: DescMethodUnary, request: JsonObject, headers: Readonly<Record<string, string>>): Promise<CallOutcome>
  close(): void
}

const DEADLINE_MS = 60_000

function headersOf({ token, environment, headers }: Sender): Readonly<Record<string, string>> {
  return {
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(environment === undefined ? {} : { 'patchbay-environment': environment }),
    ...headers,
  }
}

/** grpc-js, which shares no line with the server's stack. */
function grpcTransport(baseUrl: string): Transport {
  const channel = new GrpcChannel(new URL(baseUrl).host, credentials.createInsecure())
  return {
    send: (method, request, headers) =>
      new Promise((resolve) => {
        const metadata = new Metadata()
        for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
        const received = new Map<string, string>()
        const call = channel.makeUnaryRequest(
          `/${method.parent.typeName}/${method.name}`,
          (bytes: Buffer) => bytes,
          (bytes: Buffer) => bytes,
          Buffer.from(toBinary(method.input, fromJson(method.input, request as never))),
          metadata,
          { deadline: Date.now() + DEADLINE_MS },
          (error, bytes) => {
            if (error !== null) return resolve({ ok: false, error: grpcError(error), headers: received })
            resolve({ ok: true, json: jsonOf(method, bytes ?? Buffer.alloc(0)), headers: received })
          },
        )
        call.on('metadata', (answer: Metadata) => {
          for (const [name, value] of Object.entries(answer.getMap())) received.set(name, String(value))
        })
      }),
    close: () => channel.close(),
  }
}

function jsonOf(method: DescMethodUnary, bytes: Uint8Array): JsonObject {
  const options = { useProtoFieldName: true, alwaysEmitImplicit: true }
  const json = toJson(method.output, fromBinary(method.output, bytes), options) as Json
  return withBothDestinations(withMilliseconds(json)) as JsonObject
}

/** JSON answers have both destinations of triggers and runs, and null for the one that was not chosen; protobuf has no null. */
function withBothDestinations(value: Json): Json {
  if (Array.isArray(value)) return value.map(withBothDestinations)
  if (!isJsonObject(value)) return value
  const inner = Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withBothDestinations(item)]))
  const isSent = 'sync_job_id' in inner && ('daemon_group_key' in inner || 'webhook_id' in inner)
  return isSent ? { daemon_group_key: null, webhook_id: null, ...inner } : inner
}

const WHOLE_SECOND = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z$/

/** protobuf's JSON leaves a zero fraction out; the service always writes milliseconds. */
function withMilliseconds(value: Json): Json {
  if (typeof value === 'string') return value.replace(WHOLE_SECOND, '$1.000Z')
  if (Array.isArray(value)) return value.map(withMilliseconds)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withMilliseconds(item)]))
}

function grpcError(error: ServiceError): CallError {
  const [details] = error.metadata.get('grpc-status-details-bin')
  const code = grpcStatus[error.code] ?? 'UNKNOWN'
  if (!Buffer.isBuffer(details)) return callErrorFromDetails(code, error.details, [])
  const { message, details: any } = fromBinary(StatusSchema, details)
  return callErrorFromDetails(
    code,
    message,
    any.map(({ typeUrl, value }) => ({ type: typeUrl.replace('type.googleapis.com/', ''), value })),
  )
}

/** The Connect protocol with JSON, by fetch alone. */
function connectTransport(baseUrl: string): Transport {
  return {
    async send(method, request, headers) {
      const response = await fetch(`${baseUrl}/${method.parent.typeName}/${method.name}`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', 'connect-protocol-version': '1' },
        body: JSON.stringify(request),
        signal: AbortSignal.timeout(DEADLINE_MS),
      })
      const json = (await response.json()) as JsonObject
      if (response.ok) return { ok: true, json, headers: new Map(response.headers) }
      const details = (json.details ?? []) as readonly { type: string; value: string }[]
      const error = callErrorFromDetails(
        String(json.code).toUpperCase().replace('CANCELED', 'CANCELLED'),
        String(json.message),
        details.map(({ type, value }) => ({ type, value: Buffer.from(value, 'base64') })),
        response.status,
      )
      return { ok: false, error, headers: new Map(response.headers) }
    },
    close: () => {},
  }
}

/** Plain HTTP, as the contract's `google.api.http` binds it. */
function restTransport(baseUrl: string): Transport {
  return {
    async send(method, request, headers) {
      const { verb, path, query, body } = restRequest(method, request)
      const response = await fetch(`${baseUrl}${path}${query}`, {
        method: verb,
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body }),
        signal: AbortSignal.timeout(DEADLINE_MS),
      })
      const json = (await response.json()) as JsonObject
      if (response.ok) return { ok: true, json, headers: new Map(response.headers) }
      const { status, message, details: errorDetails } = json.error as unknown as RestError
      const details = errorDetails.map(({ '@type': url, ...rest }) => ({
        type: url.replace('type.googleapis.com/', ''),
        value: rest,
      }))
      const error = callErrorFromDetails(status, message, details, response.status)
      return { ok: false, error, headers: new Map(response.headers) }
    },
    close: () => {},
  }
}

interface RestError {
  readonly code: number
  readonly status: string
  readonly message: string
  readonly details: readonly ({ readonly '@type': string } & JsonObject)[]
}

interface RestRequest {
  readonly verb: string
  readonly path: string
  readonly query: string
  readonly body: string | undefined
}

function restRequest(method: DescMethodUnary, request: JsonObject): RestRequest {
  if (method.name === 'Call')
    return method.parent.name === 'UnifiedService' ? unifiedRequest(request) : callRequest(request)
  const { pattern, body } = getOption(method, http)
  if (pattern.case === undefined || pattern.case === 'custom') throw new Error(`${method.name} has no REST binding`)
  const rest = { ...request }
  const path = pattern.value.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest[name]
    delete rest[name]
    return encodeURIComponent(String(value ?? ''))
  })
  const verb = pattern.case.toUpperCase()
  if (body === '*') return { verb, path, query: '', body: JSON.stringify(rest) }
  const pairs = Object.entries(rest).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((item) => [name, String(item)] as [string, string]),
  )
  const query = pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`
  return { verb, path, query, body: undefined }
}

/** A call of a unified resource: any method of a record or, without id, of the resource. */
function unifiedRequest(request: JsonObject): RestRequest {
  const { integrated_account_id, model = 'crm', resource = 'contacts', method = 'list', id, page, ...rest } = request
  const { query, body, remote_fields, dry_run, include_raw } = rest
  const parameters = { integrated_account_id, ...(page as JsonObject), dry_run, include_raw, ...(query as JsonObject) }
  const pairs = Object.entries(parameters).flatMap(([name, value]): (readonly [string, Json | undefined])[] =>
    isJsonObject(value) ? Object.entries(value).map(([key, each]) => [`${name}[${key}]`, each]) : [[name, value]],
  )
  const [verb, last] = UNIFIED_VERBS[String(method)] ?? ['POST', method]
  const segments = [model, resource, id, last].filter((segment) => segment !== undefined && segment !== '')
  const fields = { ...(body as JsonObject), ...(remote_fields === undefined ? {} : { remote_fields }) }
  return {
    verb,
    path: `/unified/${segments.map((segment) => encodeURIComponent(String(segment))).join('/')}`,
    query: `?${new URLSearchParams(textsOf(pairs))}`,
    body: verb === 'GET' || Object.keys(fields).length === 0 ? undefined : JSON.stringify(fields),
  }
}

function textsOf(pairs: readonly (readonly [string, Json | undefined])[]): [string, string][] {
  return pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
}

/** Verb and last segment of methods with an address of their own. */
const UNIFIED_VERBS: Readonly<Record<string, readonly [string, string]>> = {
  list: ['GET', ''],
  get: ['GET', ''],
  create: ['POST', ''],
  update: ['PATCH', ''],
  delete: ['DELETE', ''],
}

/** A call in HTTP's own terms: the one RPC that no address is bound to. */
function callRequest(request: JsonObject): RestRequest {
  const { integrated_account_id, resource = 'repos', method = 'list', id = '_', page, query, body, ...rest } = request
  const flags = { dry_run: rest.dry_run, include_raw: rest.include_raw }
  const args = rest.args === undefined ? undefined : JSON.stringify(rest.args)
  const parameters = { integrated_account_id, ...(page as JsonObject), ...flags, args, ...(query as JsonObject) }
  const pairs = Object.entries(parameters).filter(([, value]) => value !== undefined)
  const segments = resource === '_' ? ['_', method] : [resource, id, method]
  return {
    verb: 'POST',
    path: `/proxy/${segments.map((segment) => encodeURIComponent(String(segment))).join('/')}`,
    query: `?${new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, String(value)]))}`,
    body: body === undefined ? undefined : JSON.stringify(body),
  }
}
