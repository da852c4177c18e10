import { CallPreviewSchema } from '../../../../gen/patchbay/v1/proxy_pb.ts'
import type { RateLimitInfo, RequestPreview, StreamedResponse } from '../../../engine/proxy/index.ts'
import { isProxyCommand } from '../../../foundation/base/index.ts'
import { type Json, type JsonObject, stringifyJson } from '../../../foundation/json/index.ts'
import { type Exchange, sendResponse } from '../exchange.ts'
import { encodeJson } from '../messages/codec.ts'
import { drainRequest } from '../pipeline/body.ts'
import { writeBody } from '../pipeline/respond.ts'
import type { RequestContext } from '../request-context.ts'
import { previewToProto } from '../services/proxy.convert.ts'
import type { HttpExchange } from './routes.ts'

const RATE_LIMIT_PARTS = ['limit', 'remaining', 'reset'] as const

/** Headers about the upstream's origin, which a browser would apply to this one. */
const ORIGIN_HEADERS: ReadonlySet<string> = new Set([
  'alt-svc',
  'clear-site-data',
  'nel',
  'report-to',
  'reporting-endpoints',
  'set-cookie',
  'set-cookie2',
  'strict-transport-security',
  'public-key-pins',
  'expect-ct',
  'service-worker-allowed',
  'refresh',
  'content-security-policy',
  'content-security-policy-report-only',
  'x-content-type-options',
])

/**
 * What keeps an answer of a third party from acting as a page of this origin, on which the connect page is: a browser takes its type as
 * it is, runs no script of it and loads nothing for it.
 */
const CONFINED = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
} as const

/** Characters that a header value may have; an upstream may send others. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Sends one JSON object, without members that are `undefined`; a large one is printed in slices. */
export async function sendJson(
  exchange: Exchange,
  members: Readonly<Record<string, Json | undefined>>,
  status = 200,
): Promise<void> {
  const body = stringifyJson(members as JsonObject)
  sendResponse(exchange, status, 'application/json', typeof body === 'string' ? body : await body)
}

/** Sends the result of a dry run without waiting for the rest of the request body. */
export async function sendPreview(exchange: HttpExchange, preview: RequestPreview): Promise<void> {
  await sendJson(exchange, { dry_run: encodeJson(CallPreviewSchema, previewToProto(preview)) })
  drainRequest(exchange, exchange.server.limits.drainTimeoutMs)
}

/** Streams an upstream's answer to the client, as fast as the client reads. */
export async function sendStream(exchange: HttpExchange, answer: StreamedResponse): Promise<void> {
  const { request, response, context, server } = exchange
  try {
    response.writeHead(answer.status, {
      ...forwardableHeaders(answer.headers),
      ...context.responseHeaders,
      ...varyOf(answer, context),
      ...CONFINED,
      // Proxies that buffer would hold back what the upstream sends bit by bit.
      'x-accel-buffering': 'no',
    })
    context.pauseDeadline()
    if (request.method !== 'HEAD') await writeBody(exchange, answer.body)
    response.end()
  } finally {
    answer.body.destroy()
  }
  drainRequest(exchange, server.limits.drainTimeoutMs)
}

/** Names the entry of the request log that the answer comes from. */
export function showLogEntry(context: RequestContext, { logId }: { readonly logId?: string | undefined }): void {
  if (logId !== undefined) context.setHeader('patchbay-log-id', logId)
}

/** Tells the upstream's rate limit as `RateLimit-*`, where it has one. This service's own is `Patchbay-RateLimit-*` here. */
export function showRateLimit(context: RequestContext, info: RateLimitInfo | undefined): void {
  if (info === undefined) return
  for (const part of RATE_LIMIT_PARTS) {
    const value = info[part]
    if (value !== undefined && HEADER_VALUE.test(value)) context.setHeader(`ratelimit-${part}`, value)
  }
}

function forwardableHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(
      ([name, value]) => !concernsOrigin(name) && !isProxyCommand(name) && HEADER_VALUE.test(value),
    ),
  )
}

function concernsOrigin(name: string): boolean {
  return ORIGIN_HEADERS.has(name) || name.startsWith('access-control-')
}

/** The header `vary` of this service and of the upstream, joined. */
function varyOf(
  { headers }: StreamedResponse,
  { responseHeaders: answerHeaders }: RequestContext,
): Readonly<Record<string, string>> {
  const names = [headers.vary, answerHeaders.vary].filter((text) => text !== undefined && HEADER_VALUE.test(text))
  return names.length === 2 ? { vary: names.join(', ') } : {}
}
