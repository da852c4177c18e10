import { afterAll, describe, expect, it } from 'vitest'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import type { Json } from '../../../../src/foundation/json/index.ts'
import type { SinkPage } from '../../../../src/sync/jobs/sink.ts'
import { createWebhookSink, type WebhookRunFields } from '../../../../src/sync/jobs/webhook-sink.ts'
import { findBodyProblem } from '../../../support/event-schemas.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { type Received, type ReceiverResponse, startReceiver } from '../../../support/webhook-receiver.ts'
import { webhookTarget } from '../../../support/webhook-target.ts'

const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
afterAll(() => http[Symbol.asyncDispose]())

const RUN: WebhookRunFields = {
  id: '01940f8a-0c00-7000-8000-0000000000f1',
  syncJobId: '01940f8a-0c00-7000-8000-0000000000b1',
  triggerId: '01940f8a-0c00-7000-8000-0000000000c1',
  integratedAccountId: '01940f8a-0c00-7000-8000-0000000000a1',
  tenantId: 'acme',
  args: { since: 'monday' },
  errorHandling: 'ignore',
  scheduledFor: new Date('2026-02-03T04:05:00Z'),
  startedAt: new Date('2026-02-03T04:05:00Z'),
  attempt: 3,
}
const PAGE: SinkPage = {
  resource: 'users',
  method: 'list',
  sequence: 7,
  page: { records: [], state: null },
  errors: [],
}
const pageOf = (records: readonly Json[]): SinkPage => ({ ...PAGE, page: { records, state: null } })
const STATS = [
  {
    resource: 'users',
    method: 'list',
    pages: 1,
    fetched: 2,
    delivered: 2,
    failed: 0,
    stopReason: 'no_cursor',
    complete: true,
    claimedTotal: 3,
    distinct: 1,
    duplicates: 1,
    isEstimate: true,
  },
]
const COMPLETED = { status: 'completed', error: null, attempt: 3, decidedAt: '2026-02-03T05:00:00.000Z' } as const
const ERROR = { reason: 'UPSTREAM_ERROR', message: 'no such user' }

async function withSink<Result>(
  answer: (request: Received, index: number) => ReceiverResponse,
  use: (sink: ReturnType<typeof createWebhookSink>, received: readonly Received[]) => Promise<Result>,
  run = RUN,
  options: Parameters<typeof webhookTarget>[1] = {},
): Promise<Result> {
  await using receiver = await startReceiver(answer)
  const target = webhookTarget(receiver.url, options)
  const signal = new AbortController().signal
  const result = await use(
    createWebhookSink({ http, clock: fastClock(), random: () => 0 }, target, run, signal),
    receiver.received,
  )
  expect(receiver.received.flatMap(({ body }) => findBodyProblem(body) ?? [])).toEqual([])
  return result
}

const ok = (): ReceiverResponse => ({ status: 200 })
const takesAtMost =
  (bytes: number) =>
  ({ body }: Received): ReceiverResponse => ({ status: body.length > bytes ? 413 : 200 })
const bodiesOf = (received: readonly Received[]) => received.map(({ body }) => JSON.parse(body))

describe('the events of a run', () => {
  it('carry the run from start to end, under ids made of run and sequence', async () => {
    const bodies = await withSink(ok, async (sink, received) => {
      await sink.started()
      await sink.page({ ...PAGE, page: { records: [{ id: 1 }], state: { page: 1 } } })
      await sink.listingError({ resource: 'users', method: 'list', sequence: 8, error: ERROR })
      await sink.ended(COMPLETED, STATS)
      await sink.ended({ ...COMPLETED, status: 'failed', error: ERROR }, STATS)
      return bodiesOf(received)
    })
    expect(bodies.map(({ id, event }) => [id, event])).toEqual([
      ['evt_01940f8a-0c00-7000-8000-0000000000f1_started', 'sync_job_run:started'],
      ['evt_01940f8a-0c00-7000-8000-0000000000f1_7', 'sync_job_run:record'],
      ['evt_01940f8a-0c00-7000-8000-0000000000f1_8', 'sync_job_run:record_error'],
      ['evt_01940f8a-0c00-7000-8000-0000000000f1_completed', 'sync_job_run:completed'],
      ['evt_01940f8a-0c00-7000-8000-0000000000f1_failed_3', 'sync_job_run:failed'],
    ])
    const subject = {
      sync_job_run_id: '01940f8a-0c00-7000-8000-0000000000f1',
      trigger_id: '01940f8a-0c00-7000-8000-0000000000c1',
      integrated_account_id: '01940f8a-0c00-7000-8000-0000000000a1',
      tenant_id: 'acme',
      resource: 'users',
    }
    expect(bodies[1].payload).toEqual({ ...subject, sequence: 7, has_more: true, records: [{ id: 1 }] })
    expect(bodies[2].payload).toEqual({ ...subject, sequence: 8, error: ERROR })
    const { stopReason, claimedTotal, isEstimate, ...stats } = STATS[0]!
    expect(bodies[4].payload).toEqual({
      id: '01940f8a-0c00-7000-8000-0000000000f1',
      sync_job_id: '01940f8a-0c00-7000-8000-0000000000b1',
      trigger_id: '01940f8a-0c00-7000-8000-0000000000c1',
      integrated_account_id: '01940f8a-0c00-7000-8000-0000000000a1',
      tenant_id: 'acme',
      status: 'failed',
      args: { since: 'monday' },
      error_handling: 'ignore',
      attempt: 3,
      scheduled_for: '2026-02-03T04:05:00.000Z',
      resource_stats: [{ ...stats, stop_reason: stopReason, claimed_total: claimedTotal, is_estimate: isEstimate }],
      error: ERROR,
    })
  })

  it.each([
    { what: "Express' default", limit: 100_000, events: 16 },
    { what: 'a small proxy', limit: 10_000, events: 100 },
  ])('are smaller after 413, each record once and in order: $what', async ({ limit, events }) => {
    const records = Array.from({ length: 100 }, (_, id) => ({ id, text: 'x'.repeat(8_000) }))
    const { result, accepted, rejected } = await withSink(takesAtMost(limit), async (sink, received) => {
      const answer = await sink.page(pageOf(records))
      const [taken, refused] = [0, 1].map((side) => received.filter(({ body }) => Number(body.length > limit) === side))
      return { result: answer, accepted: taken ?? [], rejected: refused ?? [] }
    })
    const bodies = bodiesOf(accepted)
    expect(bodies.flatMap(({ payload }) => payload.records)).toEqual(records)
    expect(bodies.map(({ payload }) => payload.sequence)).toEqual(bodies.map((_, index) => 7 + index))
    expect(bodies.map(({ payload }) => payload.has_more)).toEqual(bodies.map((_, index) => index < bodies.length - 1))
    expect(result).toEqual({ kind: 'accepted', sequences: bodies.length })
    expect(bodies.length).toBeLessThanOrEqual(events)
    expect(rejected.length).toBeLessThan(7)
    expect(new Set(rejected.map(({ body }) => body.length)).size).toBe(rejected.length)
  })

  it('have other ids in another size, so that a receiver takes none for one that it has', async () => {
    const page = pageOf(Array.from({ length: 4 }, (_, id) => ({ id, text: 'x'.repeat(60_000) })))
    const idsOf = (limit: number) =>
      withSink(takesAtMost(limit), async (sink, received) => {
        await sink.page(page)
        return bodiesOf(received.filter(({ body }) => body.length <= limit)).map(({ id }) => id)
      })
    const [all, halves, again] = [await idsOf(300_000), await idsOf(130_000), await idsOf(130_000)]
    expect(all).toEqual([`evt_${RUN.id}_7`])
    expect(halves).toHaveLength(2)
    expect(new Set([...all, ...halves]).size).toBe(3)
    expect(again).toEqual(halves)
  })

  it('end the run when one record is more than the receiver takes, with the reason', async () => {
    const page = pageOf([{ id: 1 }, { id: 2, text: 'x'.repeat(120_000) }, { id: 3 }])
    const { result, count } = await withSink(takesAtMost(100_000), async (sink, received) => {
      const answer = await sink.page(page)
      return { result: answer, count: received.length }
    })
    expect(result).toEqual({
      kind: 'failed',
      error: {
        reason: 'WEBHOOK_REFUSED',
        message: expect.stringMatching(/status 413 to an event of one record, of 1200\d\d bytes: let its server take/),
      },
    })
    expect(count).toBe(3)
  })

  it('are of the size that the webhook names', async () => {
    const records = Array.from({ length: 200 }, (_, id) => ({ id, text: 'é'.repeat(1_000) }))
    const sizes = await withSink(
      ok,
      async (sink, received) => {
        await sink.page(pageOf(records))
        return received.map(({ body }) => Buffer.byteLength(body))
      },
      RUN,
      { maxEventBytes: 65_536 },
    )
    expect(Math.max(...sizes)).toBeLessThanOrEqual(65_536)
    expect(Math.max(...sizes)).toBeGreaterThan(55_000)
  })

  it('split a page at 500 records and at 256 KiB, one sequence number each, the last one without more', async () => {
    const small = Array.from({ length: 600 }, (_, id) => ({ id }))
    const large = Array.from({ length: 4 }, (_, id) => ({ id: `large ${id}`, text: 'é'.repeat(50_000) }))
    const { answer, payloads, sizes } = await withSink(ok, async (sink, received) => ({
      answer: await sink.page(pageOf([...small, ...large])),
      payloads: bodiesOf(received).map(({ payload }) => payload),
      sizes: received.map(({ body }) => Buffer.byteLength(body)),
    }))
    expect(answer).toEqual({ kind: 'accepted', sequences: 3 })
    expect(payloads.map(({ sequence, records, has_more }) => [sequence, records.length, has_more])).toEqual([
      [7, 500, true],
      [8, 102, true],
      [9, 2, false],
    ])
    expect(payloads.flatMap(({ records }) => records)).toEqual([...small, ...large])
    expect(Math.max(...sizes)).toBeLessThanOrEqual(256 * 1024)
  })

  it('stay within 256 KiB however long the names around the records are', async () => {
    const run = { ...RUN, tenantId: '\u0001'.repeat(255) }
    const page = { ...PAGE, resource: '\u{1f4c7}'.repeat(127) }
    const records = Array.from({ length: 1_000 }, (_, id) => ({ id, text: 'x'.repeat(1_000) }))
    const sizes = await withSink(
      ok,
      async (sink, received) => {
        await sink.page({ ...page, page: { records, state: null } })
        return received.map(({ body }) => Buffer.byteLength(body))
      },
      run,
    )
    expect(Math.max(...sizes)).toBeLessThanOrEqual(256 * 1024)
    expect(Math.max(...sizes)).toBeGreaterThan(250 * 1024)
  })

  it('let a record larger than a batch travel alone', async () => {
    const records = [{ id: 1 }, { id: 2, text: 'x'.repeat(400_000) }, { id: 3 }]
    const counts = await withSink(ok, async (sink, received) => {
      await sink.page(pageOf(records))
      return bodiesOf(received).map(({ payload }) => payload.records.length)
    })
    expect(counts).toEqual([1, 1, 1])
  })

  it('carry errors in place of records with batch', async () => {
    const [body] = await withSink(ok, async (sink, received) => {
      expect(await sink.page({ ...PAGE, errors: [ERROR] })).toEqual({ kind: 'accepted', sequences: 1 })
      return bodiesOf(received)
    })
    expect(body.payload).toMatchObject({ sequence: 7, records: [], errors: [ERROR], has_more: false })
  })

  it('wait for each other: nothing is sent after an event that was not accepted', async () => {
    const records = Array.from({ length: 1_200 }, (_, id) => ({ id }))
    const result = await withSink(
      (_, index) => ({ status: index === 1 ? 422 : 200 }),
      async (sink, received) => ({ answer: await sink.page(pageOf(records)), sent: received.length }),
    )
    expect(result.sent).toBe(2)
    expect(result.answer).toMatchObject({ kind: 'retry' })
  })
})

describe('what a receiver answers', () => {
  it('stops the run with 400 to started, and only to that', async () => {
    const answers = await withSink(
      () => ({ status: 400 }),
      async (sink) => [await sink.started(), await sink.page(pageOf([1]))],
    )
    expect(answers).toEqual([
      { kind: 'stopped' },
      {
        kind: 'retry',
        error: { reason: 'WEBHOOK_REFUSED', message: 'the webhook answered with status 400 after 1 attempt' },
      },
    ])
  })

  it('fails the run with 410', async () => {
    const answer = await withSink(
      () => ({ status: 410 }),
      (sink) => sink.started(),
    )
    expect(answer).toMatchObject({ kind: 'failed', error: { reason: 'WEBHOOK_REFUSED' } })
  })

  it('makes it unavailable while it does not answer, with the reason', async () => {
    const down = await withSink(
      () => 'hang-up',
      (sink) => sink.ended(COMPLETED, []),
    )
    expect(down).toMatchObject({ kind: 'unavailable', error: { reason: 'UPSTREAM_UNREACHABLE' } })
  })

  it.each([408, 425, 429, 500, 502, 503, 504, 521, 530])(
    'makes it unavailable with %i, for as long as it asks',
    async (status) => {
      const answer = await withSink(
        () => ({ status, headers: { 'retry-after': '90' } }),
        (sink) => sink.page(pageOf([1])),
      )
      expect(answer).toMatchObject({ kind: 'unavailable', error: { reason: 'WEBHOOK_REFUSED' }, afterMs: 90_000 })
    },
  )

  it.each([301, 401, 404, 422])('ends the attempt with %i, which does not pass by itself', async (status) => {
    const answer = await withSink(
      () => ({ status }),
      (sink) => sink.ended(COMPLETED, []),
    )
    expect(answer).toMatchObject({ kind: 'retry', error: { reason: 'WEBHOOK_REFUSED' } })
  })

  it('cannot be had from an address that may not be called: the run fails', async () => {
    const target = webhookTarget('http://169.254.169.254/')
    const deps = { http, clock: fastClock(), random: () => 0 }
    const answer = await createWebhookSink(deps, target, RUN, new AbortController().signal).started()
    expect(answer).toMatchObject({ kind: 'failed', error: { reason: 'EGRESS_BLOCKED' } })
  })
})
