import { Webhook } from 'standardwebhooks'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import type { PageStep } from '../../../../src/engine/proxy/index.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { execute, jsonb } from '../../../../src/foundation/database/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import type { Lease } from '../../../../src/foundation/queue/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import type { ResolvedAccount } from '../../../../src/platform/accounts/index.ts'
import { executeWebhookRun } from '../../../../src/sync/jobs/index.ts'
import type { WebhookRunDeps } from '../../../../src/sync/jobs/webhook-run.ts'
import { createRun, getRun, type QueuedRun, RunQueue, retryRun } from '../../../../src/sync/runs/index.ts'
import { type RunOutcome, type RunProgress, WEBHOOK_QUEUE_GROUP } from '../../../../src/sync/runs/run.ts'
import { createWebhook, rotateWebhookSecret } from '../../../../src/webhooks/outbound/index.ts'
import { SECRETS_AGE_MAX_MS } from '../../../../src/webhooks/outbound/signing.ts'
import { clockedDatabase } from '../../../support/database.ts'
import { findBodyProblem } from '../../../support/event-schemas.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { createTenant, type Tenant } from '../../../support/tenant.ts'
import { type Receiver, startReceiver } from '../../../support/webhook-receiver.ts'
import { NO_UNIFIED } from './no-unified.ts'

const { database, clock } = await clockedDatabase()
const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
const secrets = createSecretStore(parseKeyRing(generateKeyRingText('k')))
/** The receiver is down for everything from this event on, until it is up for all. */
let downFrom: string | undefined
let isReceiverUp = true
const receiver: Receiver = await startReceiver(({ body }) => {
  if (downFrom !== undefined && body.includes(downFrom)) isReceiverUp = false
  return isReceiverUp ? { status: 204 } : 'hang-up'
})
afterAll(async () => {
  await receiver[Symbol.asyncDispose]()
  await http[Symbol.asyncDispose]()
  expect(receiver.received.flatMap(({ body }) => findBodyProblem(body) ?? [])).toEqual([])
})

const WEBHOOK_DEPS = { secrets, clock: fastClock(), findUrlViolation: () => undefined }
const PAGES: readonly PageStep[] = [1, 2, 3].map((page) => ({
  kind: 'page',
  page,
  records: [{ id: page }],
  rateLimit: undefined,
  state: page < 3 ? { page } : null,
  stopReason: page < 3 ? undefined : 'no_cursor',
}))
const LIMITED = { kind: 'rate_limited', limitedBy: 'upstream', status: 429, rateLimit: undefined, body: null } as const
const PLAN = compilePlan({ base_url: 'https://api.example.com', resources: { repos: { list: { path: '/repos' } } } })

let tenant: Tenant
let queue: RunQueue
let webhookId: string
let secret: string
let seen: number
/** The last write of a wait. */
let shown: Promise<void> | undefined

beforeEach(async () => {
  await execute(database.pool, 'truncate sync_job_run, run_queue, run_lease, run_checkpoint, previous_run')
  tenant = await createTenant(database)
  await clock.stop()
  queue = new RunQueue({ database, random: () => 0 })
  const created = await database.transaction((tx) =>
    createWebhook(WEBHOOK_DEPS, tx, tenant.environmentId, { targetUrl: receiver.url }),
  )
  webhookId = created.webhook.id
  secret = created.secret
  isReceiverUp = true
  downFrom = undefined
  seen = receiver.received.length
})

async function create(node: JsonObject = { resource: 'repos', method: 'list', persist: true }): Promise<string> {
  const { environmentId, syncJobId, accountIds } = tenant
  await execute(database.pool, 'update sync_job set resources = :resources::jsonb where id = :syncJobId', {
    resources: jsonb([node]),
    syncJobId,
  })
  const destination = { kind: 'webhook', webhookId } as const
  const input = { syncJobId, integratedAccountId: accountIds[0] ?? '', destination }
  const deps = { queue, assertMapped: async () => undefined, resolveArgs: async () => ({}) }
  const run = await database.transaction((tx) => createRun(deps, tx, environmentId, input))
  return run.id
}

/** Claims the one run that waits, executes it as a worker does, and settles it, unless the worker is lost before that. */
async function work(
  deps: Partial<WebhookRunDeps> = {},
  isLost = false,
): Promise<{ run: Lease<QueuedRun>; outcome: RunOutcome }> {
  const [run] = await queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder: 'worker', limit: 1 })
  if (run === undefined) throw new Error('nothing waits')
  const progress: RunProgress = {
    showWait: (ms) => {
      shown = queue.showWait(run, ms)
    },
    save: async (...saved: Parameters<RunProgress['save']>) =>
      (await queue.save(run, ...saved)).isStopRequested ? ('stop' as const) : ('continue' as const),
  }
  const all: WebhookRunDeps = {
    http,
    secrets,
    clock: fastClock(),
    random: () => 0,
    database,
    loadAccount: async () => readyAccount(),
    proxy: { pages: pagesFrom },
    warn: () => {},
    ...NO_UNIFIED,
    ...deps,
  }
  const outcome = await executeWebhookRun(all, run, progress, new AbortController().signal)
  if (isLost) {
    await clock.advance(30_000)
    await queue.reap()
  } else await queue.settle([{ ...run, outcome }])
  return { run, outcome }
}

async function* pagesFrom(...[, , , state]: Parameters<WebhookRunDeps['proxy']['pages']>): AsyncGenerator<PageStep> {
  yield* PAGES.slice(Number(state?.page ?? 0))
}

function readyAccount(): ResolvedAccount {
  const access = { id: 'account', isSandbox: false, context: {}, credentials: {}, environmentVariables: {} }
  return { account: { tenantId: 'acme' }, plan: PLAN, access } as ResolvedAccount
}

function events() {
  return receiver.received.slice(seen).map(({ body }) => JSON.parse(body))
}

const names = () => events().map(({ event, payload }) => `${event.split(':')[1]}${payload.sequence ?? ''}`)

/** Whether a request to the receiver has a signature of the secret. The clock of the run is not that of the library. */
function isSignedBy(secret: string, { headers, body }: (typeof receiver.received)[number]): boolean {
  const sentAt = new Date(Number(headers['webhook-timestamp']) * 1_000)
  const signature = new Webhook(secret).sign(String(headers['webhook-id']), sentAt, body)
  return String(headers['webhook-signature']).split(' ').includes(signature)
}

const read = (id: string) => getRun(database.pool, tenant.environmentId, id)

it('a secret that is rotated while a run goes on signs the events after it, beside the old one', async () => {
  await create()
  let rotated = ''
  const runClock = fastClock()
  const rotate = async () =>
    await database.transaction((tx) => rotateWebhookSecret(WEBHOOK_DEPS, tx, tenant.environmentId, webhookId))
  async function* pages(): AsyncGenerator<PageStep> {
    const [first, ...rest] = PAGES
    if (first !== undefined) yield first
    rotated = (await rotate()).secret
    // The answer to a rotation comes when no process uses older secrets.
    runClock.advance(SECRETS_AGE_MAX_MS + 1)
    yield* rest
  }
  await work({ clock: runClock, proxy: { pages } })
  const requests = receiver.received.slice(seen)
  expect(names()).toEqual(['started', 'record1', 'record2', 'record3', 'completed'])
  expect(requests.map((request) => isSignedBy(rotated, request))).toEqual([false, false, true, true, true])
  expect(requests.map((request) => isSignedBy(secret, request))).toEqual(Array(5).fill(true))
})

describe('a run whose receiver goes down', () => {
  it('waits without a worker and without losing attempts, says for whom, and resumes at the page', async () => {
    const id = await create()
    downFrom = '"sequence":2'
    for (let outage = 1; outage <= 8; outage++) {
      const { outcome } = await work()
      expect(outcome.kind).toBe('rate_limited')
      expect(await read(id)).toMatchObject({ status: 'rate_limited', attempt: 0, finishedAt: null })
      expect((await read(id)).error?.message).toContain('the webhook did not answer')
      expect(await queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder: 'worker', limit: 1 })).toEqual([])
      await clock.advance(15 * 60_000)
    }
    expect([...new Set(names())]).toEqual(['started', 'record1', 'record2'])
    downFrom = undefined
    isReceiverUp = true
    seen = receiver.received.length
    expect((await work()).outcome).toEqual({ kind: 'completed' })
    expect(names()).toEqual(['record2', 'record3', 'completed'])
    expect(await read(id)).toMatchObject({
      status: 'completed',
      attempt: 1,
      error: null,
      resourceStats: [{ delivered: 3 }],
    })
  })
})

describe('a run whose third party asks to wait', () => {
  const limitedOnPage2 = (retryAfterSeconds: number): WebhookRunDeps['proxy'] => {
    let limits = 1
    return {
      async *pages(...args) {
        for await (const step of pagesFrom(...args)) {
          if (step.page === 2 && limits-- > 0) yield { ...LIMITED, retryAfterSeconds, page: 2, state: { page: 1 } }
          yield step
        }
      },
    }
  }

  it('for more than 30 s waits without a worker and without losing an attempt, and resumes at the page', async () => {
    const id = await create()
    expect((await work({ proxy: limitedOnPage2(31) })).outcome).toEqual({ kind: 'rate_limited', afterMs: 31_000 })
    expect(await read(id)).toMatchObject({
      status: 'rate_limited',
      attempt: 0,
      error: null,
      finishedAt: null,
      resourceStats: [{ fetched: 1, delivered: 1 }],
    })
    await clock.advance(30_000)
    expect(await queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder: 'worker', limit: 1 })).toEqual([])
    await clock.advance(1_000)
    expect((await work()).outcome).toEqual({ kind: 'completed' })
    expect(names()).toEqual(['started', 'record1', 'record2', 'record3', 'completed'])
    expect(await read(id)).toMatchObject({ status: 'completed', attempt: 1 })
  })

  it('for less says so for as long as it does', async () => {
    const id = await create()
    const states: unknown[] = []
    const fast = fastClock()
    const waits: WebhookRunDeps['clock'] = {
      ...fast,
      async sleep(ms) {
        await fast.sleep(ms)
        await shown
        states.push((await read(id)).waiting)
        await clock.advance(ms)
        states.push((await read(id)).waiting)
      },
    }
    const until = new Date(clock.now().getTime() + 12_000)
    expect((await work({ proxy: limitedOnPage2(12), clock: waits })).outcome).toEqual({ kind: 'completed' })
    expect(states).toMatchObject([{ reason: 'rate_limited', until }, undefined])
  })

  it('for less sits it out under its lease', async () => {
    const id = await create()
    expect((await work({ proxy: limitedOnPage2(30) })).outcome).toEqual({ kind: 'completed' })
    expect(names()).toEqual(['started', 'record1', 'record2', 'record3', 'completed'])
    expect(await read(id)).toMatchObject({ status: 'completed', attempt: 1 })
  })
})

describe('a run whose workers are lost one after another', () => {
  it('is not tried a sixth time, and its receiver gets the event', async () => {
    const id = await create()
    for (let attempt = 1; attempt <= 5; attempt++) {
      expect(await queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder: 'lost', limit: 1 })).toMatchObject([
        { id, attempt },
      ])
      await clock.advance(30_001)
      await queue.reap()
    }
    const error = { reason: 'lease_expired' }
    expect((await work()).outcome).toMatchObject({ kind: 'failed', error })
    expect(events()).toMatchObject([{ event: 'sync_job_run:failed', payload: { id, status: 'failed', error } }])
    expect(await read(id)).toMatchObject({ status: 'failed', error })
  })
})

describe('the ending of a run', () => {
  const gone = async () => {
    throw new Failure('ACCOUNT_NOT_ACTIVE', 'not now')
  }
  const lastTwo = () => receiver.received.slice(-2).map(({ body }) => body)

  it('completed, whose worker is lost after delivering it, is delivered again identically and completed', async () => {
    const id = await create()
    await work({}, true)
    expect(await read(id)).toMatchObject({ status: 'created', error: { reason: 'lease_expired' } })
    expect((await work({ loadAccount: gone })).outcome).toEqual({ kind: 'completed' })
    expect(names()).toEqual(['started', 'record1', 'record2', 'record3', 'completed', 'completed'])
    const [first, second] = lastTwo()
    expect(second).toBe(first)
    expect(await read(id)).toMatchObject({ status: 'completed', attempt: 2, error: null })
  })

  it('failed, whose worker is lost after telling it, is the only one though the run could go on by then', async () => {
    const id = await create()
    await work({ loadAccount: gone }, true)
    expect((await work()).outcome).toMatchObject({ kind: 'failed', error: { reason: 'ACCOUNT_NOT_ACTIVE' } })
    expect(names()).toEqual(['failed', 'failed'])
    const [first, second] = lastTwo()
    expect(second).toBe(first)
    expect(await read(id)).toMatchObject({ status: 'failed', error: { reason: 'ACCOUNT_NOT_ACTIVE' } })
  })

  it('stays as it was decided when every further worker is lost, and the webhook is gone', async () => {
    const id = await create()
    for (let lost = 1; lost <= 5; lost++) await work({}, true)
    await execute(database.pool, 'update webhook set is_active = false where id = :webhookId', { webhookId })
    expect((await work()).outcome).toEqual({ kind: 'completed' })
    expect(new Set(names())).toEqual(new Set(['started', 'record1', 'record2', 'record3', 'completed']))
    expect(await read(id)).toMatchObject({ status: 'completed' })
  })

  it('is taken back when the run is retried by hand, and the next one has an id of its own', async () => {
    const id = await create()
    const retried = () => database.transaction((tx) => retryRun({ queue }, tx, tenant.environmentId, id))
    await work({ loadAccount: gone })
    await retried()
    await work({ loadAccount: gone })
    await retried()
    expect((await work()).outcome).toEqual({ kind: 'completed' })
    const told = events().filter(({ event }) => event === 'sync_job_run:failed')
    expect(told.map((event) => event.id)).toEqual([`evt_${id}_failed_1`, `evt_${id}_failed_2`])
    expect(names().at(-1)).toBe('completed')
  })
})

describe('a run that may not begin', () => {
  const rejection = (reason: 'ACCOUNT_NOT_ACTIVE' | 'DATABASE_UNAVAILABLE' | 'TOKEN_REQUEST_FAILED') => async () => {
    throw new Failure(reason, 'not now')
  }

  it('because its account may not be called fails, and its receiver gets the event', async () => {
    const id = await create()
    const error = { reason: 'ACCOUNT_NOT_ACTIVE', message: 'not now' }
    expect((await work({ loadAccount: rejection('ACCOUNT_NOT_ACTIVE') })).outcome).toEqual({ kind: 'failed', error })
    expect(events()).toMatchObject([
      { event: 'sync_job_run:failed', payload: { id, tenant_id: 'acme', status: 'failed', error, resource_stats: [] } },
    ])
    expect(await read(id)).toMatchObject({ status: 'failed', error })
  })

  it('delivers to its receiver when that is available again, and is failed only then', async () => {
    const id = await create()
    isReceiverUp = false
    expect((await work({ loadAccount: rejection('ACCOUNT_NOT_ACTIVE') })).outcome.kind).toBe('rate_limited')
    isReceiverUp = true
    seen = receiver.received.length
    await clock.advance(60_000)
    await work({ loadAccount: rejection('ACCOUNT_NOT_ACTIVE') })
    expect(names()).toEqual(['failed'])
    expect(await read(id)).toMatchObject({ status: 'failed' })
  })

  it('for a transient reason waits for as long as its job says, and then goes on', async () => {
    const id = await create()
    for (let hours = 0; hours < 8; hours++) {
      await work({ loadAccount: rejection('TOKEN_REQUEST_FAILED') })
      expect(await read(id)).toMatchObject({ status: 'created', waiting: { reason: 'retry' } })
      await clock.advance(3_600_000)
    }
    expect((await work()).outcome).toEqual({ kind: 'completed' })
  })

  it('for a transient reason is retried, and delivers to its receiver after the last attempt alone', async () => {
    const id = await create()
    await execute(database.pool, 'update sync_job set give_up_after_seconds = 0 where id = :id', {
      id: tenant.syncJobId,
    })
    for (let attempt = 1; attempt <= 5; attempt++) {
      expect(names()).toEqual([])
      await work({ loadAccount: rejection('TOKEN_REQUEST_FAILED') })
      await clock.advance(15 * 60_000)
    }
    expect(names()).toEqual(['failed'])
    expect(await read(id)).toMatchObject({ status: 'failed', attempt: 5 })
  })

  it('because its webhook is gone or off fails', async () => {
    const id = await create()
    await execute(database.pool, 'update webhook set is_active = false where id = :webhookId', { webhookId })
    expect((await work()).outcome).toMatchObject({ kind: 'failed', error: { reason: 'WEBHOOK_INACTIVE' } })
    expect(names()).toEqual([])
    expect(await read(id)).toMatchObject({ status: 'failed' })
  })

  it('because its stored resources make no plan fails, and its receiver gets the event', async () => {
    await create({ resource: 'a', method: 'list', depends_on: 'a' })
    expect((await work()).outcome).toMatchObject({ kind: 'failed', error: { reason: 'RESOURCES_INVALID' } })
    expect(names()).toEqual(['failed'])
  })
})
