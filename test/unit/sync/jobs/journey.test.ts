import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { afterAll, describe, expect, it } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { executeRun } from '../../../../src/sync/jobs/index.ts'
import { createProxySource } from '../../../../src/sync/jobs/page-source.ts'
import { createWebhookSink, type WebhookRunFields } from '../../../../src/sync/jobs/webhook-sink.ts'
import { newSigningSecret } from '../../../../src/webhooks/outbound/signing.ts'
import { findBodyProblem } from '../../../support/event-schemas.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { startReceiver } from '../../../support/webhook-receiver.ts'
import { webhookTarget } from '../../../support/webhook-target.ts'
import { recordingProgress, runOf } from './recording.ts'

const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
afterAll(() => http[Symbol.asyncDispose]())

interface UpstreamAnswer {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body: unknown
}

/** A third party on loopback that answers by path and query, and remembers what it was asked. */
async function startUpstream(answer: (url: URL, authorization: string | undefined) => UpstreamAnswer) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://upstream')
    asked.push(`${url.pathname}${url.search}`)
    const { status = 200, headers, body } = answer(url, request.headers.authorization)
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    asked,
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const RUN: WebhookRunFields = {
  id: '01940f8a-0c00-7000-8000-0000000000f1',
  syncJobId: '01940f8a-0c00-7000-8000-0000000000b1',
  triggerId: null,
  integratedAccountId: '01940f8a-0c00-7000-8000-0000000000a1',
  tenantId: 'tenant',
  args: {},
  errorHandling: 'ignore',
  scheduledFor: new Date(0),
  startedAt: new Date(0),
  attempt: 1,
}
const RESOURCES = [
  { resource: 'repos', method: 'list', persist: true },
  {
    resource: 'issues',
    method: 'list',
    depends_on: 'repos',
    persist: true,
    query: { repo: '{{resources.repos.name}}' },
  },
]

function definitionAt(baseUrl: string): JsonObject {
  return {
    base_url: baseUrl,
    authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
    pagination: { format: 'page', config: { page_key: 'page', limit_key: 'size', limit: 2 } },
    resources: {
      repos: { list: { method: 'get', path: '/repos', response_path: 'items' } },
      issues: { list: { method: 'get', path: '/repos/{{query.repo}}/issues', response_path: 'items' } },
    },
  }
}

describe('a sync from a described API to a webhook', () => {
  it('pages, follows parents, waits for rate limits in the queue and, shown, in its worker, and delivers every record once, signed', async () => {
    const lists: Record<string, JsonObject[]> = {
      '/repos': ['a', 'b', 'c/d'].map((name) => ({ name })),
      '/repos/a/issues': [{ id: 1 }, { id: 2 }, { id: 3 }],
      '/repos/c%2Fd/issues': [{ id: 4 }],
    }
    const retryAfters = ['120', '12'] // one that postpones the run, one that it sits out
    await using upstream = await startUpstream((url, authorization) => {
      expect(authorization).toBe('Bearer key-1')
      if (url.pathname === '/repos/b/issues') return { status: 404, body: { message: 'no issues here' } }
      const isLimited = url.pathname === '/repos/a/issues' && url.searchParams.get('page') === '2'
      const retryAfter = isLimited ? retryAfters.shift() : undefined
      if (retryAfter !== undefined) return { status: 429, headers: { 'retry-after': retryAfter }, body: {} }
      const [page, size] = ['page', 'size'].map((name) => Number(url.searchParams.get(name)))
      return { body: { items: lists[url.pathname]?.slice((page! - 1) * size!, page! * size!) } }
    })
    await using receiver = await startReceiver()
    const secret = newSigningSecret()
    const clock = fastClock()
    const proxy = createProxy({ http, clock, evaluator: { evaluate: async () => undefined }, random: () => 0 })
    const access = {
      id: 'account',
      isSandbox: false,
      context: {},
      environmentVariables: {},
      credentials: { api_key: 'key-1' },
    }
    const plan = compilePlan(definitionAt(upstream.baseUrl))
    const target = webhookTarget(receiver.url, { secrets: [secret] })
    const signal = new AbortController().signal
    const sink = createWebhookSink({ http, clock, random: () => 0 }, target, RUN, signal)
    const deps = { source: createProxySource(proxy, plan, access), sink, clock, random: () => 0, account: access }
    const progress = recordingProgress()

    const first = await executeRun(deps, runOf(RESOURCES), progress, signal)
    expect(first).toEqual({ kind: 'rate_limited', afterMs: 120_000 })
    expect(progress.shownWaitsMs).toEqual([])
    const resumedAt = upstream.asked.length
    const second = await executeRun(deps, runOf(RESOURCES, { checkpoint: progress.checkpoint }), progress, signal)
    expect(second).toEqual({ kind: 'partially_completed' })
    expect(progress.shownWaitsMs).toEqual([12_000])
    expect(upstream.asked[resumedAt]).toBe('/repos/a/issues?page=2&size=2')

    const events = receiver.received.map(({ headers, body }) => {
      new Webhook(secret).verify(body, headers as Record<string, string>)
      return JSON.parse(body)
    })
    expect(receiver.received.flatMap(({ body }) => findBodyProblem(body) ?? [])).toEqual([])
    expect(events.map(({ event, payload }) => [event.split(':')[1], payload.resource, payload.records])).toEqual([
      ['started', undefined, undefined],
      ['record', 'repos', [{ name: 'a' }, { name: 'b' }]],
      ['record', 'issues', [{ id: 1 }, { id: 2 }]],
      ['record', 'issues', [{ id: 3 }]],
      ['record_error', 'issues', undefined],
      ['record', 'repos', [{ name: 'c/d' }]],
      ['record', 'issues', [{ id: 4 }]],
      ['completed', undefined, undefined],
    ])
    expect(events[4].payload.error.message).toContain('404')
    expect(progress.stats).toMatchObject([
      { resource: 'repos', fetched: 3, delivered: 3, stopReason: 'empty_page', complete: true },
      { resource: 'issues', fetched: 4, delivered: 4, failed: 1, complete: false },
    ])
  })
})
