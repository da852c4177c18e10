import { describe, expect, it } from 'vitest'
import { InboundEventService } from '../../gen/patchbay/v1/inbound_event_service_pb.ts'
import { TaskService } from '../../gen/patchbay/v1/task_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import { execute, jsonb, query } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { createTaskRunner } from '../../src/foundation/queue/index.ts'
import { silentLogger } from '../../src/foundation/telemetry/logger.ts'
import type { InboundState } from '../../src/webhooks/inbound/inbound-event.ts'
import { INBOUND_REPLAY_TASK } from '../../src/webhooks/inbound/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { TIME } from '../support/matchers.ts'
import { createApiEnvironment } from '../support/seeded-tenant.ts'

const {
  listInboundEvents: list,
  getInboundEvent: get,
  expungeInboundEvent: expunge,
  replayInboundEvent: replay,
  replayInboundEvents: replayMany,
} = InboundEventService.method

const app = await startTestApp()
const clients = app.clients()
const pool = app.database.pool
const runnerDeps = { database: app.database, random: Math.random, logger: silentLogger }
const runner = createTaskRunner(runnerDeps, [INBOUND_REPLAY_TASK])

interface Given {
  readonly sourceId?: string
  readonly state?: InboundState
  readonly body?: Uint8Array | string
  readonly query?: string
  readonly items?: readonly JsonObject[]
}

/** An environment without requests. */
async function freshEnvironment() {
  const { environmentId, environmentToken: token } = await createApiEnvironment(app, app.first.teamToken)
  return { environmentId, token }
}

/** A request to an account, as it is stored. */
async function receive(environmentId: string, given: Given = {}): Promise<string> {
  const { sourceId = newId(), state = 'processed', body = '{"a":1}', query: text = '', items = [] } = given
  const id = newId()
  await execute(
    pool,
    `insert into inbound_event (environment_id, id, source_kind, source_id, environment_integration_id, integrated_account_id,
       method, path, query, remote_address, body_bytes, state, signature, dedupe_key, trace, processed_at)
     values (:environmentId, :id, 'integrated_account', :sourceId, :sourceId, :sourceId, 'POST', '/integrated-account-webhook/x',
       :text, '192.0.2.1', :bytes, :state, 'valid', 'k', '{"signature": {"ms": 0.2}}', now())`,
    { environmentId, id, sourceId, text, bytes: body.length, state },
  )
  await execute(
    pool,
    `insert into inbound_content (environment_id, id, headers, body, payload) values (:environmentId, :id, :headers::jsonb, :body, null)`,
    { environmentId, id, headers: jsonb([['X-Signature', 'abc']]), body: Buffer.from(body as string) },
  )
  for (const [index, item] of items.entries())
    await execute(
      pool,
      'insert into inbound_item select * from jsonb_populate_record(null::inbound_item, :row::jsonb)',
      {
        row: jsonb({ environment_id: environmentId, inbound_event_id: id, index, is_replay: false, ...item }),
      },
    )
  return id
}

async function queuedIds(environmentId: string): Promise<readonly string[]> {
  const sql = 'select event_id as id from inbound_queue where environment_id = :environmentId order by event_id'
  return (await query<{ readonly id: string }>(pool, sql, { environmentId })).map(({ id }) => id)
}

async function pageOf(client: Client, token: string, filter: JsonObject = {}) {
  const page = await client.ok(list, filter, { token })
  const events = page.inbound_events as unknown as readonly JsonObject[]
  return { ids: events.map(({ id }) => id), events, next: String(page.next_page_token) }
}

describe.each(inTurn(clients))('inbound events over $wire', (client) => {
  it('show what was sent and what it led to', async () => {
    const { environmentId, token } = await freshEnvironment()
    const [sourceId, accountId, eventId] = [newId(), newId(), newId()]
    const routed = {
      state: 'routed',
      integrated_account_id: accountId,
      event_id: eventId,
      resource: 'contacts',
      record_id: '7',
    }
    const unrouted = { state: 'unrouted', lookup_value: 'team-9', detail: 'no account' }
    const id = await receive(environmentId, { sourceId, items: [routed, unrouted] })
    const shown = {
      id,
      environment_id: environmentId,
      source_kind: 'integrated_account',
      source_id: sourceId,
      environment_integration_id: sourceId,
      integrated_account_id: sourceId,
      state: 'processed',
      signature: 'valid',
      method: 'POST',
      path: '/integrated-account-webhook/x',
      query: '',
      remote_address: '192.0.2.1',
      body_bytes: 7,
      dedupe_key: 'k',
      duplicate_count: 0,
      received_at: TIME,
      processed_at: TIME,
      has_content: true,
    }
    expect((await pageOf(client, token)).events).toEqual([{ ...shown, headers: [], items: [] }])
    expect(await client.ok(get, { id }, { token })).toEqual({
      ...shown,
      trace: { signature: { ms: 0.2 } },
      headers: [{ name: 'X-Signature', value: 'abc' }],
      body: '{"a":1}',
      items: [
        { index: 0, ...routed },
        { index: 1, ...unrouted },
      ],
    })
    const binary = await receive(environmentId, { body: Buffer.from([0xff, 0x00]) })
    expect(await client.ok(get, { id: binary }, { token })).toMatchObject({ body_base64: '/wA=' })
  })

  it('can be filtered by each facet and by several, and paged', async () => {
    const { environmentId, token } = await freshEnvironment()
    const [sourceId, accountId] = [newId(), newId()]
    const toAccount = { state: 'routed', integrated_account_id: accountId }
    const unmatched = { state: 'unrouted', lookup_value: 'team-9' }
    const address = await receive(environmentId, { sourceId })
    const routed = await receive(environmentId, { items: [toAccount, toAccount, unmatched, unmatched] })
    const unrouted = await receive(environmentId, { state: 'unrouted', items: [unmatched] })
    const own = await receive(environmentId, { sourceId: accountId, state: 'failed', items: [toAccount] })
    const filters: readonly (readonly [JsonObject, readonly string[]])[] = [
      [{}, [own, unrouted, routed, address]],
      [{ state: 'failed' }, [own]],
      [{ state: 'processed' }, [routed, address]],
      [{ source_id: sourceId }, [address]],
      [{ integrated_account_id: accountId }, [own, routed]],
      [{ integrated_account_id: accountId, state: 'processed' }, [routed]],
      [{ lookup_value: 'team-9' }, [unrouted, routed]],
      [{ lookup_value: 'team-9', integrated_account_id: accountId }, [routed]],
      [{ lookup_value: 'team-1' }, []],
      [{ since: '2020-01-01T00:00:00Z' }, [own, unrouted, routed, address]],
      [{ until: '2020-01-01T00:00:00Z' }, []],
    ]
    for (const [filter, ids] of filters) expect((await pageOf(client, token, filter)).ids).toEqual(ids)
    for (const filter of [{}, { integrated_account_id: accountId }, { lookup_value: 'team-9' }]) {
      const all = (await pageOf(client, token, filter)).ids
      const first = await pageOf(client, token, { ...filter, page_size: 1 })
      const rest = await pageOf(client, token, { ...filter, page_token: first.next })
      expect([...first.ids, ...rest.ids]).toEqual(all)
      expect(await pageOf(client, token, { ...filter, page_size: all.length })).toMatchObject({ ids: all, next: '' })
    }
    const { next: page_token } = await pageOf(client, token, { page_size: 1 })
    expect((await client.callError(list, { state: 'failed', page_token }, { token })).reason).toBe('PAGE_TOKEN_INVALID')
  })

  it('have pages that are bounded in bytes', async () => {
    const { environmentId, token } = await freshEnvironment()
    for (let made = 0; made < 5; made++) await receive(environmentId, { query: 'q'.repeat(100_000) })
    const first = await pageOf(client, token)
    expect(first.ids).toHaveLength(2)
    const second = await pageOf(client, token, { page_token: first.next })
    expect((await pageOf(client, token, { page_token: second.next })).ids).toHaveLength(1)
  })

  it('reject filters that make no sense, naming the field', async () => {
    const { token } = await freshEnvironment()
    const day = '2026-01-02T00:00:00Z'
    const bad: readonly (readonly [JsonObject, string])[] = [
      [{ state: 'lost' }, 'state'],
      [{ source_id: 'x' }, 'source_id'],
      [{ lookup_value: '' }, 'lookup_value'],
      [{ since: day, until: day }, 'until'],
      [{ page_size: -1 }, 'page_size'],
    ]
    for (const [filter, field] of bad)
      expect((await client.callError(list, filter, { token })).violations).toMatchObject([{ field }])
  })

  it('lose their content for good, and keep their rows; one that waits fails', async () => {
    const { environmentId, token } = await freshEnvironment()
    const item = { state: 'routed', event_id: newId() }
    const id = await receive(environmentId, { body: 'secret', query: 'q=secret', items: [item] })
    const expunged = await client.ok(expunge, { id }, { token })
    expect(expunged).toMatchObject({ id, state: 'processed', has_content: false, query: '', items: [item] })
    expect(expunged.body).toBeUndefined()
    expect(JSON.stringify(expunged)).not.toContain('secret')
    expect(await client.ok(expunge, { id }, { token })).toEqual(expunged)
    expect(await client.ok(get, { id }, { token })).toEqual(expunged)

    const waiting = await receive(environmentId, { state: 'received' })
    await execute(
      pool,
      `insert into inbound_queue (event_id, environment_id, source_id, source_kind, queue_group, available_at, attempt)
       values (:waiting, :environmentId, :waiting, 'integrated_account', 'received', now(), 0)`,
      { waiting, environmentId },
    )
    expect(await client.ok(expunge, { id: waiting }, { token })).toMatchObject({
      state: 'failed',
      error: { reason: 'CONTENT_EXPUNGED' },
    })
    expect(await query(pool, 'select from inbound_queue where event_id = :waiting', { waiting })).toEqual([])
    for (const method of [get, expunge])
      expect((await client.callError(method, { id: newId() }, { token })).reason).toBe('RESOURCE_NOT_FOUND')
  })

  it('wait again after a replay, once per request_id; what has no content or was rejected cannot', async () => {
    const { environmentId, token } = await freshEnvironment()
    const id = await receive(environmentId, { state: 'unrouted' })
    const request = { id, request_id: newId() }
    const queued = await client.ok(replay, request, { token })
    expect(queued).toMatchObject({ id, state: 'received', has_content: true })
    expect(await client.ok(replay, request, { token })).toEqual(queued)
    expect(await client.ok(replay, { id }, { token })).toEqual(queued)
    expect(await queuedIds(environmentId)).toEqual([id])

    const rejected = await receive(environmentId, { state: 'rejected' })
    const empty = await receive(environmentId)
    await client.ok(expunge, { id: empty }, { token })
    for (const each of [rejected, empty])
      expect((await client.callError(replay, { id: each }, { token })).reason).toBe('RUN_STATE_CONFLICT')
    expect((await client.callError(replay, { id: newId() }, { token })).reason).toBe('RESOURCE_NOT_FOUND')
  })

  it('are replayed by a filter in the background, oldest first', async () => {
    const { environmentId, token } = await freshEnvironment()
    const unmatched = { state: 'unrouted', lookup_value: 'team-9' }
    const first = await receive(environmentId, { state: 'unrouted', items: [unmatched] })
    await receive(environmentId, { state: 'unrouted', items: [{ ...unmatched, lookup_value: 'team-1' }] })
    await receive(environmentId)
    const last = await receive(environmentId, { state: 'unrouted', items: [unmatched] })
    const { environmentId: other } = await freshEnvironment()
    const sourceId = newId()
    const theirs = await receive(other, { sourceId, state: 'unrouted', items: [unmatched] })
    const filter = { state: 'unrouted', lookup_value: 'team-9', since: '2020-01-01T00:00:00Z' }
    const { id } = await client.ok(replayMany, filter, { token })
    while (await runner.runOnce());
    expect(await client.ok(TaskService.method.getTask, { id }, { token })).toMatchObject({
      kind: 'replay_inbound_events',
      state: 'completed',
      result: { queued: 2, skipped: 0 },
    })
    expect(await queuedIds(environmentId)).toEqual([first, last])
    for (const foreign of [{ source_id: sourceId }, { integrated_account_id: sourceId }, { lookup_value: 'team-9' }])
      await client.ok(replayMany, foreign, { token })
    while (await runner.runOnce());
    expect(await queuedIds(other)).not.toContain(theirs)
    expect((await client.callError(replayMany, { state: 'rejected' }, { token })).violations).toMatchObject([
      { field: 'state' },
    ])
  })

  it('are not replayed without a filter, which would send everything again', async () => {
    const { token } = await freshEnvironment()
    const { violations } = await client.callError(replayMany, { request_id: newId() }, { token })
    expect(violations).toMatchObject([{ field: 'request', description: expect.stringMatching(/source_id.*since/) }])
    expect(await client.ok(replayMany, { since: '2020-01-01T00:00:00Z' }, { token })).toHaveProperty('id')
  })
})
