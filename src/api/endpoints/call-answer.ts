import { CallPreviewSchema } from '../../../gen/patchbay/v1/proxy_pb.ts'
import { type Json, type JsonObject, printJson } from '../../base/index.ts'
import type { RateLimitInfo, RequestPreview, StreamedAnswer } from '../../proxy/index.ts'
import { previewToProto } from '../convert/call.ts'
import { type Exchange, sendAnswer } from '../exchange.ts'
import { encodeJson } from '../message/codec.ts'
import type { OpenCall } from '../open-call.ts'
import { discardRest } from '../stages/body.ts'
import { writeBody } from '../stages/write.ts'
import type { PlainExchange } from './plain-route.ts'

const RATE_LIMIT_PARTS = ['limit', 'remaining', 'reset'] as const

/** Speak about the third party's own address, and would be believed about this one. */
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
])

/** What a header may carry; a third party may send more. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Sends one JSON object, without members that are `undefined`; a large one is printed in slices. */
export async function sendJson(exchange: Exchange, members: Readonly<Record<string, Json | undefined>>): Promise<void> {
  const body = printJson(members as JsonObject)
  sendAnswer(exchange, 200, 'application/json', typeof body === 'string' ? body : await body)
}

/** Sends what a dry run found; a body that is still arriving is not waited for. */
export async function sendPreview(exchange: PlainExchange, preview: RequestPreview): Promise<void> {
  await sendJson(exchange, { dry_run: encodeJson(CallPreviewSchema, previewToProto(preview)) })
  discardRest(exchange, exchange.limits.lingerMs)
}

/** Passes a third party's answer on as it arrives, as fast as the client reads. */
export async function sendStream(exchange: PlainExchange, answer: StreamedAnswer): Promise<void> {
  const { request, response, call, limits } = exchange
  try {
    response.writeHead(answer.status, { ...passedOn(answer.headers), ...call.answerHeaders, ...varyOf(answer, call) })
    call.pauseDeadline()
    if (request.method !== 'HEAD') await writeBody(exchange, answer.body, limits.slowReaderMs)
    response.end()
  } finally {
    answer.body.destroy()
  }
  discardRest(exchange, limits.lingerMs)
}

/** Shows the third party's rate limit in place of this service's own, where it tells of one. */
export function showRateLimit(call: OpenCall, info: RateLimitInfo | undefined): void {
  if (info === undefined) return
  for (const part of RATE_LIMIT_PARTS) {
    const value = info[part]
    if (value !== undefined && HEADER_VALUE.test(value)) call.setHeader(`ratelimit-${part}`, value)
    else call.removeHeader(`ratelimit-${part}`)
  }
}

function passedOn(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name, value]) => !concernsOrigin(name) && HEADER_VALUE.test(value)),
  )
}

function concernsOrigin(name: string): boolean {
  return ORIGIN_HEADERS.has(name) || name.startsWith('access-control-')
}

/** What the answer varies by, here and at the third party. */
function varyOf({ headers }: StreamedAnswer, { answerHeaders }: OpenCall): Readonly<Record<string, string>> {
  const names = [headers.vary, answerHeaders.vary].filter((text) => text !== undefined && HEADER_VALUE.test(text))
  return names.length === 2 ? { vary: names.join(', ') } : {}
}
