import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createEgressPolicy, createHttpClient, type HttpClient } from '../../../../src/foundation/egress/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { executeRun } from '../../../../src/sync/jobs/index.ts'
import { createWebhookSink, type WebhookRunFields } from '../../../../src/sync/jobs/webhook-sink.ts'
import type { ResourceStats } from '../../../../src/sync/runs/index.ts'
import { newSigningSecret } from '../../../../src/webhooks/outbound/signing.ts'
import { someCases } from '../../../support/case-count.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { type Received, type Receiver, startReceiver } from '../../../support/webhook-receiver.ts'
import { webhookTarget } from '../../../support/webhook-target.ts'
import { Crash, recordingProgress, runOf } from './recording.ts'
import { scriptedSource } from './scripted-source.ts'

/** Three levels, a loop in the middle, a page that needs several events, a page of parents that needs several windows. */
const RESOURCES = [
  { resource: 'teams', method: 'list', persist: true },
  {
    resource: 'boards',
    method: 'list',
    depends_on: 'teams',
    loop_on: 'kinds',
    persist: true,
    query: { team: '{{resources.teams.id}}', kind: '{{args.kinds}}' },
  },
  {
    resource: 'cards',
    method: 'list',
    depends_on: 'boards',
    persist: true,
    query: { board: '{{resources.boards.id}}' },
  },
  { resource: 'files', method: 'list', persist: true },
]
const ARGS = { kinds: ['x', 'y'] }

const FAT = 't'.repeat(20_000)
const HUGE = 'h'.repeat(120_000)

const source = scriptedSource({
  pageSize: 3,
  records: ({ resource, query }): Json[] => {
    if (resource === 'teams') return [1, 2, 3, 4, 5].map((id) => ({ id, text: id < 3 ? FAT : '' }))
    if (resource === 'boards') return query.team === 4 ? [] : [`${query.team}${query.kind}`].map((id) => ({ id, FAT }))
    if (resource === 'cards') return ['a', 'b', 'c', 'd'].map((id) => ({ id: `${query.board}${id}` }))
    return [1, 2, 3, 4, 5, 6].map((id) => ({ id, HUGE }))
  },
})

const RUN: WebhookRunFields = {
  id: '0198c0de-0000-7000-8000-000000000001',
  syncJobId: 'job',
  triggerId: null,
  integratedAccountId: 'account',
  tenantId: 'tenant',
  args: ARGS,
  errorHandling: 'ignore',
  scheduledFor: new Date('2026-01-01T00:00:00Z'),
  startedAt: new Date('2026-01-01T00:00:00Z'),
  attempt: 1,
}

const secret = newSigningSecret()
let http: HttpClient
let receiver: Receiver
beforeAll(async () => {
  http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
  receiver = await startReceiver()
})
afterAll(async () => {
  await receiver[Symbol.asyncDispose]()
  await http[Symbol.asyncDispose]()
})

/** Where the process dies: on the answer to an event, before a checkpoint is stored, or right after. */
type Death = { readonly at: 'event' | 'before save' | 'after save'; readonly count: number }

interface Attempt {
  readonly isDone: boolean
  readonly checkpoint: JsonObject | null
  readonly stats: readonly ResourceStats[]
  readonly events: readonly Received[]
  readonly saves: number
}

/** One process executing the run from a checkpoint until it is done or dies. */
async function attempt(checkpoint: JsonObject | null, death?: Death): Promise<Attempt> {
  const begun = receiver.received.length
  let answers = 0
  const dyingHttp: Pick<HttpClient, 'stream'> = {
    async stream(request) {
      const response = await http.stream(request)
      if (death?.at === 'event' && ++answers === death.count) throw new Crash()
      return response
    },
  }
  const progress = recordingProgress((save) => {
    const isNow = save + 1 === death?.count
    if (isNow && death.at === 'before save') throw new Crash()
    if (isNow && death.at === 'after save')
      return () => {
        throw new Crash()
      }
    return undefined
  })
  progress.checkpoint = checkpoint
  const clock = fastClock()
  const signal = new AbortController().signal
  const target = webhookTarget(receiver.url, { secrets: [secret] })
  const sink = createWebhookSink({ http: dyingHttp, clock, random: () => 0 }, target, RUN, signal)
  const deps = { source, sink, clock, random: () => 0, account: { context: {}, environmentVariables: {} } }
  const isDone = await executeRun(deps, runOf(RESOURCES, { args: ARGS, checkpoint }), progress, signal).then(
    ({ kind }) => kind === 'completed',
    (error) => {
      if (!(error instanceof Crash)) throw error
      return false
    },
  )
  const events = receiver.received.slice(begun)
  return { isDone, checkpoint: progress.checkpoint, stats: progress.stats, events, saves: progress.saves }
}

/** What an event says, without what may differ between two sendings. */
function contentOf({ body }: Received): {
  id: string
  sequence: number | undefined
  resource: string
  content: string
} {
  const { id, event, payload } = JSON.parse(body)
  const { resource_stats: _, ...rest } = payload
  return { id, sequence: payload.sequence, resource: payload.resource, content: JSON.stringify([event, rest]) }
}

describe('a run whose process dies', () => {
  it('anywhere delivers everything, and twice only the page in flight, under the same sequence numbers', async () => {
    const whole = await attempt(null)
    expect(whole.isDone).toBe(true)
    const expected = whole.events.map(contentOf)
    const sequences = expected.flatMap(({ sequence }) => (sequence === undefined ? [] : [sequence]))
    expect(sequences).toEqual(sequences.map((_, index) => index + 1))
    expect(expected.length).toBeGreaterThan(15)

    const deaths: Death[] = [
      ...whole.events.map((_, index) => ({ at: 'event', count: index + 1 }) as const),
      ...Array.from({ length: whole.saves }, (_, index) => ({ at: 'before save', count: index + 1 }) as const),
      ...Array.from({ length: whole.saves }, (_, index) => ({ at: 'after save', count: index + 1 }) as const),
    ]
    for (const death of someCases(deaths, 12)) {
      const first = await attempt(null, death)
      expect(first.isDone, `${death.at} ${death.count}`).toBe(false)
      const second = await attempt(first.checkpoint)
      expect(second.isDone).toBe(true)
      const [before, after] = [first.events.map(contentOf), second.events.map(contentOf)]

      const seen = new Map([...before, ...after].map((event) => [event.id, event]))
      expect([...seen.values()].map(({ content }) => content)).toEqual(expected.map(({ content }) => content))

      const resumedAt = Number(first.checkpoint?.next_sequence ?? 1)
      const twice = after.filter(({ id }) => before.some((event) => event.id === id))
      const pages = twice.filter(({ sequence }) => sequence !== undefined)
      expect(pages.map(({ sequence }) => sequence)).toEqual(pages.map((_, index) => resumedAt + index))
      expect(new Set(pages.map(({ resource }) => resource)).size).toBeLessThanOrEqual(1)
      if (death.at === 'after save') expect(pages).toEqual([])
      expect(second.stats).toEqual(whole.stats)
    }
  })

  it('again and again still gets to the end', async () => {
    const whole = await attempt(null)
    const events: Received[] = []
    let checkpoint: JsonObject | null = null
    let lives = 0
    while (lives < 200) {
      const life: Attempt = await attempt(checkpoint, { at: 'after save', count: 2 })
      lives++
      events.push(...life.events)
      checkpoint = life.checkpoint
      if (life.isDone) break
    }
    expect(lives).toBeGreaterThan(5)
    const ids = new Set(events.map((event) => contentOf(event).id))
    expect([...ids]).toEqual(whole.events.map((event) => contentOf(event).id))
  })

  it('sends nothing unsigned, and nothing above 256 KiB or 500 records', () => {
    expect(receiver.received.length).toBeGreaterThan(0)
    for (const { headers, body } of receiver.received) {
      new Webhook(secret).verify(body, headers as Record<string, string>)
      expect(Buffer.byteLength(body)).toBeLessThanOrEqual(256 * 1024)
      expect(JSON.parse(body).payload.records?.length ?? 0).toBeLessThanOrEqual(500)
    }
  })
})
