import { afterAll, expect, it } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import { parseJson } from '../../../../src/foundation/json/index.ts'
import { executeRun } from '../../../../src/sync/jobs/index.ts'
import { createProxySource } from '../../../../src/sync/jobs/page-source.ts'
import { createWebhookSink, type WebhookRunFields } from '../../../../src/sync/jobs/webhook-sink.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { NUMBERS_JSON } from '../../../support/json-numbers.ts'
import { startUpstream } from '../../../support/upstream.ts'
import { startReceiver } from '../../../support/webhook-receiver.ts'
import { webhookTarget } from '../../../support/webhook-target.ts'
import { recordingProgress, runOf } from './recording.ts'

const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
const upstream = await startUpstream()
afterAll(async () => {
  await http[Symbol.asyncDispose]()
  await upstream[Symbol.asyncDispose]()
})

const RUN: WebhookRunFields = {
  id: 'run',
  syncJobId: 'job',
  triggerId: null,
  integratedAccountId: 'account',
  tenantId: 'tenant',
  args: {},
  errorHandling: 'ignore',
  scheduledFor: new Date(0),
  startedAt: new Date(0),
  attempt: 1,
}
const IDS = ['12345678901234567890', '12345678901234567891', '12345678901234567892']
const RECORDS = IDS.map((id) => `{"id":${id},"all":${NUMBERS_JSON}}`)

it('a sync delivers numbers equal as text, and distinguishes records whose ids a double would merge', async () => {
  const headers = { 'content-type': 'application/json' }
  upstream.script(
    {
      request: 'GET /deals?after=1.10',
      answer: { headers, text: `{"items":[${RECORDS.join(',')}],"next":9007199254740993}` },
    },
    { request: 'GET /deals?after=1.10&cursor=9007199254740993', answer: { headers, text: '{"items":[],"next":null}' } },
  )
  await using receiver = await startReceiver()
  const clock = fastClock()
  const random = () => 0
  const proxy = createProxy({ http, clock, evaluator: { evaluate: async () => undefined }, random })
  const plan = compilePlan({
    base_url: upstream.url,
    pagination: { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'cursor' } },
    resources: { deals: { list: { method: 'get', path: '/deals', response_path: 'items' } } },
  })
  const account = { context: {}, environmentVariables: {} }
  const access = { ...account, id: 'account', isSandbox: false, credentials: {} }
  const target = webhookTarget(receiver.url)
  const { signal } = new AbortController()
  const sink = createWebhookSink({ http, clock, random }, target, RUN, signal)
  const progress = recordingProgress()
  const resources = [{ resource: 'deals', method: 'list', persist: true, query: { after: '{{args.after}}' } }]
  const run = runOf(resources, { args: { after: parseJson('1.10') } })

  const outcome = await executeRun(
    { source: createProxySource(proxy, plan, access), sink, clock, random, account },
    run,
    progress,
    signal,
  )

  upstream.verify()
  expect(outcome).toEqual({ kind: 'completed' })
  const bodies = receiver.received.map(({ body }) => String(body))
  expect(bodies.find((body) => body.includes('"records"'))).toContain(`"records":[${RECORDS.join(',')}]`)
  expect(progress.stats).toMatchObject([{ resource: 'deals', fetched: 3, distinct: 3, duplicates: 0 }])
})
