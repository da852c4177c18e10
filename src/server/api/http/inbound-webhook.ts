import { METHODS } from 'node:http'
import type { WebhookAnswer } from '../../../engine/definitions/index.ts'
import type { HeaderList, InboundRequest, SourceAddress } from '../../../webhooks/inbound/index.ts'
import type { ApiRequest } from '../exchange.ts'
import { hasNoBody, readBody } from '../pipeline/body.ts'
import type { HttpExchange, HttpRoute } from './routes.ts'

/** Of the body of a request that is answered before it is read: to an unknown address, or above the rate. */
const UNREAD_BYTES_MAX = 1024
/** Third parties wait 3 to 30 seconds; a handshake that visits an address takes 5 at most. */
const DEADLINE_MS = 15_000

const PATHS: Readonly<Record<SourceAddress['kind'], string>> = {
  integrated_account: '/integrated-account-webhook/',
  environment_integration: '/environment-integration-webhook/',
}

/** What the routes of inbound webhooks need. */
export interface InboundWebhookDeps {
  readonly receive: (address: SourceAddress, request: InboundRequest) => Promise<WebhookAnswer>
}

/**
 * `/integrated-account-webhook/{id}` and `/environment-integration-webhook/{id}`: requests of third parties, with any method; OPTIONS
 * may be a handshake (CloudEvents HTTP Web Hooks 1.0.2, §4). Nothing is read of a body before its address is known.
 */
export function inboundWebhookRoutes({ receive }: InboundWebhookDeps): readonly HttpRoute[] {
  const kinds = Object.keys(PATHS) as SourceAddress['kind'][]
  return kinds.map((kind) => ({
    verbs: METHODS,
    path: PATHS[kind],
    isPrefix: true,
    access: 'public',
    readsBody: 'before_authentication',
    deadlineDefaultMs: DEADLINE_MS,
    drainBytesMax: UNREAD_BYTES_MAX,
    async handle(exchange) {
      const address = { kind, id: exchange.path.slice(PATHS[kind].length) }
      exchange.context.logFields = { [`${kind}_id`]: address.id.slice(0, UUID_LENGTH) }
      try {
        sendAnswer(exchange, await receive(address, toInboundRequest(exchange)))
      } catch (error) {
        endReuse(exchange)
        throw error
      }
    },
  }))
}

const UUID_LENGTH = 36

function toInboundRequest(exchange: HttpExchange): InboundRequest {
  const { request, context, server, path, query } = exchange
  return {
    method: request.method ?? 'GET',
    path,
    query,
    headers: headerList(request),
    remoteAddress: context.clientAddress(server.accessControl.trustedProxies),
    readBody: (bytesMax) => readBody(exchange, server.limits, bytesMax),
  }
}

/** Without the pseudo-headers of HTTP/2. */
function headerList({ rawHeaders }: ApiRequest): HeaderList {
  const headers: [string, string][] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (!name.startsWith(':')) headers.push([name, rawHeaders[index + 1] ?? ''])
  }
  return headers
}

function sendAnswer({ request, response, context }: HttpExchange, { status, body, headers }: WebhookAnswer): void {
  if (context.isClientGone) return
  const isEmpty = STATUS_WITHOUT_BODY.includes(status)
  const length = isEmpty ? {} : { 'content-length': Buffer.byteLength(body) }
  response.writeHead(status, { ...context.responseHeaders, ...headers, ...length, 'content-security-policy': SANDBOX })
  response.end(request.method === 'HEAD' || isEmpty ? undefined : body)
}

/** What a definition answers is no page of this host, although it may return what a sender chose, as any content type. */
const SANDBOX = "default-src 'none'; sandbox"
const STATUS_WITHOUT_BODY: readonly number[] = [204, 205, 304]

/** A connection whose body stays unread is not used again. */
function endReuse({ request, context }: HttpExchange): void {
  if (request.httpVersionMajor === 1 && !request.complete && !hasNoBody(request))
    context.setHeader('connection', 'close')
}
