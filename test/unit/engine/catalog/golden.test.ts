import { afterAll, describe, expect, test } from 'vitest'
import { SHIPPED_NAMES } from '../../../../src/engine/catalog/index.ts'
import { compilePlan, type Plan, resolveConfig } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import {
  type AccountAccess,
  type CallTarget,
  createProxy,
  type ProxyRequest,
} from '../../../../src/engine/proxy/index.ts'
import { createSealer } from '../../../../src/foundation/base/index.ts'
import type { EgressRequest, EgressResponse } from '../../../../src/foundation/egress/index.ts'
import type { Json } from '../../../../src/foundation/json/index.ts'
import { type GoldenAnswer, type GoldenCall, type GoldenRequest, readGoldenFile } from './golden-file.ts'
import { shipped } from './shipped.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const evaluator = createEvaluator()
const sealer = createSealer()
afterAll(() => evaluator[Symbol.asyncDispose]())

describe.each(SHIPPED_NAMES)('%s', (name) => {
  const { config } = shipped(name)
  const golden = readGoldenFile(name) ?? { account: {}, calls: [] }
  const plan = planOf(name)

  test('shows a request of each of its methods', () => {
    const methods = [...plan.resources].flatMap(([resource, methods]) =>
      [...methods.keys()].map((method) => `${resource}.${method}`),
    )
    const shown = new Set(golden.calls.map(({ call }) => call))
    expect(methods.filter((method) => !shown.has(method))).toEqual([])
  })

  test('shows a page that follows another, an error and a limit', () => {
    const hasPaging = [...plan.resources.values()].some((methods) =>
      [...methods.keys()].some((method) => methods.get(method)?.pagination !== undefined),
    )
    const has = (check: (call: GoldenCall) => boolean) => golden.calls.some(check)
    expect(has(({ next }) => next !== undefined) || !hasPaging, 'a second page').toBe(true)
    expect(
      has(({ outcome }) => outcome === 'upstream_error'),
      'an error',
    ).toBe(true)
    expect(has(({ outcome }) => outcome === 'rate_limited') || config.rate_limit === undefined, 'a limit').toBe(true)
  })

  test.each(golden.calls.map((call) => [call.call, call] as const))('%s', async (_name, call) => {
    const sent: EgressRequest[] = []
    const proxy = proxyAnswering(sent, call.answer)
    const access: AccountAccess = {
      id: 'account-1',
      isSandbox: false,
      context: {},
      credentials: {},
      ...golden.account,
      environmentVariables: { ...golden.account.environmentVariables },
    }
    const outcome = await proxy.call(plan, access, requestOf(call))
    expect(sent.map(shownRequest)[0]).toEqual(wanted(call.request))
    expect(outcome).toMatchObject(wantedOutcome(call))
    if (outcome.kind === 'ok' && call.result !== undefined) expect(outcome.result).toEqual(call.result)
    if (call.next === undefined) return
    const cursor = outcome.kind === 'ok' ? outcome.page?.nextCursor : undefined
    if (typeof cursor !== 'string') throw new Error(`no further page: ${JSON.stringify(outcome)}`)
    sent.length = 0
    await proxyAnswering(sent, { status: 204 }).call(plan, access, { ...requestOf(call), page: { cursor } })
    expect(sent.map(shownRequest)[0]).toMatchObject(wanted(call.next))
  })
})

/** The definition as it is in force in an environment that has set what an override usually sets. */
function planOf(name: string): Plan {
  return compilePlan(resolveConfig(shipped(name).config, {}).config)
}

function proxyAnswering(sent: EgressRequest[], answer: GoldenAnswer | undefined) {
  const send = async (request: EgressRequest): Promise<EgressResponse> => {
    sent.push(request)
    return responseOf(request.url, answer ?? { json: {} })
  }
  const stream = () => Promise.reject(new Error('golden calls do not stream'))
  const clock = { now: () => NOW, monotonicMs: () => 0, sleep: async () => {} }
  return createProxy({ http: { send, stream }, evaluator, clock, random: () => 0.5, nonce: () => 'n0nce', sealer })
}

function responseOf(url: string, { status = 200, headers = {}, json, text, base64 }: GoldenAnswer): EgressResponse {
  const type = json === undefined ? {} : { 'content-type': 'application/json' }
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  const body =
    json === undefined
      ? Buffer.from(base64 ?? text ?? '', base64 === undefined ? 'utf8' : 'base64')
      : Buffer.from(JSON.stringify(json))
  return { status, headers: { ...type, ...lower }, body, url }
}

function requestOf({ call, id, query, body, args, limit }: GoldenCall): ProxyRequest {
  const [resource = '', method = ''] = call.split('.')
  const target: CallTarget =
    resource === '_' ? { kind: 'action', action: method } : { kind: 'method', resource, method }
  return {
    target,
    id,
    query,
    body,
    args,
    page: limit === undefined ? undefined : { limit },
    limits: { attemptsMax: 1 },
  }
}

function shownRequest({ method, url, headers, body }: EgressRequest): GoldenRequest {
  const { 'user-agent': _, ...shown } = headers
  const text = body === undefined ? null : typeof body === 'string' ? body : Buffer.from(body).toString()
  const isJson = /\bjson\b/.test(headers['content-type'] ?? '')
  return { method, url, headers: shown, body: text !== null && isJson ? (JSON.parse(text) as Json) : text }
}

function wanted<Request extends Partial<GoldenRequest>>(request: Request): Request {
  return 'headers' in request ? { body: null, ...request } : request
}

function wantedOutcome({ outcome = 'ok', stop_reason, status, message, retry_after }: GoldenCall) {
  return {
    kind: outcome,
    ...(stop_reason === undefined ? {} : { page: { stopReason: stop_reason } }),
    ...(status === undefined ? {} : { status }),
    ...(message === undefined ? {} : { message }),
    ...(retry_after === undefined ? {} : { retryAfterSeconds: retry_after }),
  }
}
