import { describe, expect, it } from 'vitest'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { deleteIntegratedAccount } from '../../../../src/platform/accounts/index.ts'
import { replayInboundEvent } from '../../../../src/webhooks/inbound/index.ts'
import { seedWebhook } from '../../../support/seed-rows.ts'
import { processFixture } from './process-fixture.ts'

const fixture = await processFixture()
const { tx, own, database, accountDeps, receive, processAll, find, eventsOf, itemsOf, accountWith, accountOf } = fixture

const VARIABLES = { PREFIX: 'p-', CLIENT_SECRET: 'hush' }
const EVENTS = `body.changes.{"event": kind, "resource": "contacts", "id": id, "data": $, "account": team}`

describe('processing a received webhook', () => {
  it('records an event of the outbox for every item of the mapping', async () => {
    const { address, id: accountId } = await accountWith({ events: EVENTS })
    const id = await receive(
      address,
      {
        changes: [
          { kind: 'created', id: 7, name: 'Ada' },
          { kind: 'deleted', id: '8' },
        ],
      },
      { providerTime: new Date('2026-01-02T03:04:05Z') },
    )
    await processAll()
    const events = await eventsOf(id)
    const { receivedAt } = await find(id)
    expect(events.map(({ type, payload }) => ({ type, payload }))).toEqual([
      {
        type: 'record:created',
        payload: {
          integration: { id: expect.any(String), name: expect.any(String) },
          resource: 'contacts',
          record_id: '7',
          data: { kind: 'created', id: 7, name: 'Ada' },
          integrated_account_id: accountId,
          tenant_id: 'acme',
          environment_integration_id: address.environmentIntegrationId,
          inbound_event_id: id,
          occurred_at: '2026-01-02T03:04:05.000Z',
          received_at: receivedAt.toISOString(),
          replay: false,
        },
      },
      { type: 'record:deleted', payload: expect.objectContaining({ record_id: '8' }) },
    ])
    expect(events.map((event) => event.accountId)).toEqual([accountId, accountId])
    expect(await itemsOf(id)).toMatchObject([
      { index: 0, state: 'routed', accountId, eventId: events[0]?.id, resource: 'contacts', recordId: '7' },
      { index: 1, state: 'routed', accountId, eventId: events[1]?.id, recordId: '8', isReplay: false },
    ])
    expect(await find(id)).toMatchObject({
      state: 'processed',
      error: null,
      trace: {
        signature: { kind: 'valid' },
        handshake: { type: 'payload' },
        mapping: { items: 2, by_event: { created: 1, deleted: 1 } },
        routing: { routed: 2 },
      },
    })
  })

  it('marks the events for dispatch to webhooks', async () => {
    await seedWebhook(database, own.environmentId)
    const { address } = await accountWith({ events: EVENTS })
    const id = await receive(address, { changes: { kind: 'updated', id: 1 } })
    await processAll()
    const [event] = await eventsOf(id)
    const sql = 'select from event_dispatch where event_id = :id'
    expect(await query(tx, sql, { id: event?.id ?? '' })).toHaveLength(1)
  })

  it('uses the payload that was made at the reception, and makes none itself', async () => {
    const { address } = await accountWith({
      payload_transform: '{"changes": {"kind": "created", "id": body.n}}',
      events: EVENTS,
    })
    const made = await receive(address, { n: 1 }, { payload: { changes: { kind: 'updated', id: 2 } } })
    const notMade = await receive(address, { n: 1 })
    await processAll()
    expect((await eventsOf(made)).map(({ type, payload }) => [type, payload.record_id])).toEqual([
      ['record:updated', '2'],
    ])
    expect((await eventsOf(notMade)).map(({ type, payload }) => [type, payload.record_id])).toEqual([
      ['record:created', '1'],
    ])
  })

  it.each([
    [
      'payload_transform',
      { payload_transform: '{"seen": SEEN}', events: '{"event": "unmapped", "data": body.seen}' },
      (named: string) => `env.PREFIX & ${named} & $join($keys(environment_variables))`,
    ],
    [
      'events',
      { events: '{"event": "unmapped", "data": SEEN}' },
      (named: string) => `env.PREFIX & ${named} & $join($keys(environment_variables))`,
    ],
  ])('%s reads environment variables, those with names of secrets only where it names them', async (_, block, seen) => {
    const data = []
    for (const named of ['""', 'env.CLIENT_SECRET']) {
      const webhook = Object.entries(block).map(([key, text]) => [key, text.replace('SEEN', seen(named))])
      const { address } = await accountWith(Object.fromEntries(webhook), {}, VARIABLES)
      const id = await receive(address, {})
      await processAll()
      data.push((await eventsOf(id))[0]?.payload.data)
    }
    expect(data).toEqual(['p-PREFIX', 'p-hushPREFIXCLIENT_SECRET'])
  })

  it('context_lookup reads environment variables', async () => {
    const lookup = { value: 'env.PREFIX & body.team', field: 'team' }
    const block = { events: '{"event": "created", "resource": "r", "id": 1}', context_lookup: lookup }
    const { installation } = await accountWith(block, { team: 'p-7' }, VARIABLES)
    const id = await receive(installation, { team: 7 })
    await processAll()
    expect(await eventsOf(id)).toHaveLength(1)
  })

  it.each([
    ['headers', '{"body": body, "headers": {"x-at": body.t}}', 'headers."x-at"'],
    ['query', '{"body": body, "query": {"at": body.t}}', 'query.at'],
    ['method', '{"body": body, "method": body.t}', 'method'],
    ['path', '{"body": body, "path": "/" & body.t}', '$substringAfter(path, "/")'],
    ['body', '{"body": {"at": body.t}}', 'body.at'],
  ])('maps the %s that payload_transform returns, and says what it has changed', async (member, transform, read) => {
    const mapping = { payload_transform: transform, events: `{"event": "unmapped", "data": ${read}}` }
    const { address } = await accountWith(mapping)
    const id = await receive(address, { t: 'MOVED' }, { payload: member === 'body' ? { at: 'MOVED' } : null })
    await processAll()
    expect((await eventsOf(id)).map(({ payload }) => payload.data)).toEqual(['MOVED'])
    expect((await find(id)).trace).toMatchObject({ transform: { changed: [member] } })
  })

  it.each([
    ['without a mapping hands the payload on', {}, { a: [1] }, [['record:unmapped', null, null, { a: [1] }]]],
    [
      'without a mapping names the record of another event type',
      {},
      { event_type: 'archived', resource_type: 'deals', resource_id: 5 },
      [['record:unmapped', 'deals', '5', { event_type: 'archived', resource_type: 'deals', resource_id: 5 }]],
    ],
    [
      'whose fields only look like those of an event is handed on',
      {},
      { event_type: 'archived', resource_type: 'deals', resource_id: {} },
      [['record:unmapped', null, null, { event_type: 'archived', resource_type: 'deals', resource_id: {} }]],
    ],
    [
      'may be mapped to meta, without a resource',
      { events: '{"event": "meta", "data": body.a}' },
      { a: 1 },
      [['record:meta', null, null, 1]],
    ],
    [
      'without a mapping reads events as payload_transform makes them',
      { payload_transform: 'body.list' },
      { list: [{ event_type: 'record:updated', resource_type: 'deals', resource_id: 5, raw: { x: 1 } }] },
      [['record:updated', 'deals', '5', { x: 1 }]],
    ],
    [
      'of type meta leads to nothing, whatever the mapping',
      { handle_verification: '{"type": "meta"}', events: EVENTS },
      { changes: [{ kind: 'created', id: 1 }] },
      [],
    ],
    ['of type verify leads to nothing', { handle_verification: '{"type": "verify"}' }, { a: 1 }, []],
    ['whose mapping returns nothing leads to nothing', { events: 'body.none' }, { a: 1 }, []],
  ])('%s', async (_, webhook, body, expected) => {
    const { address } = await accountWith(webhook)
    const id = await receive(address, body)
    await processAll()
    expect(
      (await eventsOf(id)).map(({ type, payload }) => [type, payload.resource, payload.record_id, payload.data]),
    ).toEqual(expected)
    expect(await find(id)).toMatchObject({ state: 'processed' })
  })

  it.each([
    ['mapping', { events: '"text"' }, {}, 'EXPRESSION_FAILED', 'events must be an object'],
    ['mapping', { events: '{"event": "renamed"}' }, {}, 'EXPRESSION_FAILED', 'events.event must be one of'],
    [
      'mapping',
      { events: '{"event": "updated", "resource": "r"}' },
      {},
      'EXPRESSION_FAILED',
      'must have an id or data',
    ],
    ['mapping', { events: '[{"event": "created"}]' }, {}, 'EXPRESSION_FAILED', 'events[0].resource must be'],
    [
      'mapping',
      { events: '{"event": "created", "resource": "r", "occurred_at": "soon"}' },
      {},
      'EXPRESSION_FAILED',
      'events.occurred_at must be a time',
    ],
    ['mapping', { events: '$error("no such thing")' }, {}, 'EXPRESSION_FAILED', 'no such thing'],
    ['handshake', { handle_verification: '{"type": "other"}' }, {}, 'EXPRESSION_FAILED', 'type'],
    [
      'context',
      { handle_verification: '{"type": "payload", "update_context": {"oauth": 1}}', events: EVENTS },
      { changes: { kind: 'created', id: 1 } },
      'CONTEXT_KEY_RESERVED',
      'oauth',
    ],
  ])('fails in the step %s of %j and does nothing', async (step, webhook, body, reason, message) => {
    const { address } = await accountWith(webhook)
    const id = await receive(address, body, { signature: 'valid' })
    await processAll()
    expect(await find(id)).toMatchObject({ state: 'failed', error: { step, reason } })
    expect((await find(id)).error?.message).toContain(message)
    expect(await eventsOf(id)).toEqual([])
    expect(await itemsOf(id)).toEqual([])
    expect(await query(tx, 'select from inbound_queue where event_id = :id', { id })).toEqual([])
  })

  const SANDBOXED = {
    max_body_bytes: 25 * 1024 * 1024,
    payload_transform: '$merge([body, {"transformed": true}])',
    handle_verification: '$count($each(body, function($value) { $value })) > 0 ? {"type": "payload"}',
    events:
      '{"event": "created", "resource": "r", "id": $string($count($split(body.filler, ","))), "data": body.transformed}',
    context_lookup: { value: '$substring($string(body.team), 0, 8)', field: 'team' },
  }

  it('evaluates every expression over a payload of several MiB', async () => {
    const { installation } = await accountWith(SANDBOXED, { team: 'T1' })
    const id = await receive(installation, { team: 'T1', filler: 'x,'.repeat(2 * 1024 * 1024) })
    await processAll()
    expect(await find(id)).toMatchObject({ state: 'processed' })
    expect(await itemsOf(id)).toMatchObject([{ state: 'routed', recordId: String(2 * 1024 * 1024 + 1) }])
  })

  it.each([
    ['transform', SANDBOXED],
    ['handshake', { ...SANDBOXED, payload_transform: undefined }],
    ['mapping', { ...SANDBOXED, payload_transform: undefined, handle_verification: undefined }],
  ])('fails in the step %s over a payload that is too large for the sandbox, and says so', async (step, webhook) => {
    const { address } = await accountWith(JSON.parse(JSON.stringify(webhook)))
    const id = await receive(address, { filler: 'x,'.repeat(3 * 1024 * 1024) })
    await processAll()
    const message = 'the input of the expression is larger than 5242880 bytes'
    expect(await find(id)).toMatchObject({ state: 'failed', error: { step, reason: 'EXPRESSION_FAILED', message } })
  })

  it('evaluates simple expressions over a payload of 25 MiB', async () => {
    const webhook = { max_body_bytes: 25 * 1024 * 1024, events: '{"event": "created", "resource": "r", "id": body.id}' }
    const { address } = await accountWith(webhook)
    const id = await receive(address, { id: 7, filler: 'x'.repeat(25 * 1024 * 1024 - 100) })
    await processAll()
    expect(await find(id)).toMatchObject({ state: 'processed' })
    expect(await itemsOf(id)).toMatchObject([{ recordId: '7' }])
  })

  it('masks secrets in the messages of errors', async () => {
    const { address } = await accountWith({ events: '$error(body.text)' })
    const id = await receive(address, { text: 'rejected the-accounts-secret' })
    await processAll()
    expect((await find(id)).error?.message).toContain('rejected')
    expect(JSON.stringify(await find(id))).not.toContain('the-accounts-secret')
  })

  it('fails when the account, or what was sent, was deleted in the meantime', async () => {
    const { address, id: accountId } = await accountWith({ events: EVENTS })
    const expunged = await receive(address, {})
    await execute(tx, 'delete from inbound_content where id = :id', { id: expunged })
    await processAll()
    expect(await find(expunged)).toMatchObject({
      state: 'failed',
      error: { step: 'load', reason: 'RESOURCE_NOT_FOUND' },
    })
    const orphan = await receive(address, {})
    const triggers = { deleteByAccount: async () => {}, stopByInstallations: async () => {} }
    await database.transaction((each) =>
      deleteIntegratedAccount({ ...accountDeps, triggers }, each, own, { id: accountId }),
    )
    await processAll()
    expect(await find(orphan)).toMatchObject({ state: 'failed', error: { step: 'load', reason: 'RESOURCE_NOT_FOUND' } })
  })
})

describe('the context of an account', () => {
  it('takes what a webhook says, secret keys encrypted and masked in what is handed on', async () => {
    const { address, id: accountId } = await accountWith({
      handle_verification:
        '{"type": "payload", "update_context": {"installation": body.installation, "hook_secret": body.secret}}',
      secret_context: ['hook_secret'],
    })
    const id = await receive(address, { installation: 42, secret: 'the-secret-of-the-hook' }, { signature: 'valid' })
    await processAll()
    const account = await accountDeps.reader.read({ environmentId: own.environmentId, id: accountId })
    expect(account?.account.context).toMatchObject({ installation: 42 })
    expect(account?.account.context).not.toHaveProperty('hook_secret')
    expect(account?.secrets.map(({ name }) => name)).toContain('webhook.hook_secret')
    const [event] = await eventsOf(id)
    expect(event?.payload.data).toEqual({ installation: 42, secret: '***' })
    expect((await find(id)).trace).toMatchObject({
      context: { accounts: 1, keys: ['installation', 'hook_secret'], secret_keys: ['hook_secret'] },
    })
    expect(JSON.stringify((await find(id)).trace)).not.toContain('the-secret')
  })

  it('of another webhook of the batch is stored although that of one cannot be', async () => {
    const update = '{"type": "payload", "update_context": body.update}'
    const { address, id: accountId } = await accountWith({ handle_verification: update, events: EVENTS })
    const ids = []
    for (const update of [{ a: 1 }, { oauth: 1 }, { b: 2 }, { api_key: 'x' }])
      ids.push(await receive(address, { update }, { signature: 'valid' }))
    await processAll()
    expect(await Promise.all(ids.map(async (id) => (await find(id)).state))).toEqual([
      'processed',
      'failed',
      'processed',
      'failed',
    ])
    const account = await accountDeps.reader.read({ environmentId: own.environmentId, id: accountId })
    expect(account?.account.context).toMatchObject({ a: 1, b: 2 })
  })

  it('is not changed by a delivery without a signature, whose items are handed on', async () => {
    const { address, id: accountId } = await accountWith(SEEN, { seen: 'before' })
    const id = await receive(address, { seen: 'forged' }, { signature: 'none' })
    await processAll()
    expect(await contextOf(accountId)).toMatchObject({ seen: 'before' })
    expect(await find(id)).toMatchObject({ state: 'processed', trace: { context: { skipped: expect.any(String) } } })
    expect(await eventsOf(id)).toHaveLength(1)
  })

  it('is not rolled back by a replay', async () => {
    const { address, id: accountId } = await accountWith(SEEN)
    const id = await receive(address, { seen: 'first' }, { signature: 'valid' })
    await processAll()
    await receive(address, { seen: 'second' }, { signature: 'valid' })
    await processAll()
    await database.transaction((each) => replayInboundEvent(each, own.environmentId, id))
    await processAll()
    expect(await contextOf(accountId)).toMatchObject({ seen: 'second' })
    expect((await find(id)).trace).toMatchObject({ replays: [{ context: { skipped: expect.any(String) } }] })
  })
})

const SEEN = { handle_verification: '{"type": "payload", "update_context": {"seen": body.seen}}' }

async function contextOf(id: string) {
  return (await accountDeps.reader.read({ environmentId: own.environmentId, id }))?.account.context
}

describe('a delivery to the address of an installation', () => {
  const lookup = { value: 'body.team', field: 'team' }

  it('is split among the accounts that its items name; what finds none is kept', async () => {
    const first = await accountWith({ events: EVENTS, context_lookup: lookup }, { team: 'T1' })
    const second = await accountOf(first.installation.id, { team: 22 }, 'globex')
    const twin = await accountOf(first.installation.id, { team: ['T1', 'T3'] })
    const changes = [
      { kind: 'created', id: 1, team: 'T1' },
      { kind: 'updated', id: 2, team: 22 },
      { kind: 'updated', id: 3, team: 'T9' },
      { kind: 'deleted', id: 4 },
    ]
    const id = await receive(first.installation, { team: '22', changes })
    await processAll()
    expect(
      (await eventsOf(id)).map(({ accountId, payload }) => [accountId, payload.tenant_id, payload.record_id]),
    ).toEqual([
      [first.id, 'acme', '1'],
      [twin.id, 'acme', '1'],
      [second.id, 'globex', '2'],
      [second.id, 'globex', '4'],
    ])
    expect((await itemsOf(id)).filter(({ state }) => state === 'unrouted')).toMatchObject([
      { index: 3, value: 'T9', recordId: '3', resource: 'contacts', accountId: null },
    ])
    expect(await find(id)).toMatchObject({ state: 'processed', trace: { routing: { routed: 4, unrouted: 1 } } })
  })

  it('leads to no tenant when several have the value, unless the third party has confirmed it for one', async () => {
    const handle_verification = '{"type": "payload", "update_context": {"seen": true}}'
    const first = await accountWith({ events: EVENTS, context_lookup: lookup, handle_verification }, { team: 'T1' })
    const other = await accountOf(first.installation.id, { team: ['T1'] }, 'globex')
    const contextsSeen = async () =>
      await Promise.all(
        [first, other].map(async ({ id }) => {
          const found = await accountDeps.reader.read({ environmentId: own.environmentId, id })
          return found?.account.context.seen ?? false
        }),
      )
    const body = { team: 'T1', changes: [{ kind: 'created', id: 1, team: 'T1' }] }
    const id = await receive(first.installation, body, { signature: 'valid' })
    await processAll()
    expect(await eventsOf(id)).toEqual([])
    expect(await itemsOf(id)).toMatchObject([
      { state: 'unrouted', value: 'T1', accountId: null, detail: expect.stringContaining('ambiguous') },
    ])
    expect(await contextsSeen()).toEqual([false, false])
    await execute(tx, "update integrated_account set external_id = 'T1' where id = :id", { id: first.id })
    await execute(tx, "update integrated_account set external_id = 'T2' where id = :id", { id: other.id })
    const confirmed = await receive(first.installation, body, { signature: 'valid' })
    await processAll()
    expect((await eventsOf(confirmed)).map(({ accountId }) => accountId)).toEqual([first.id])
    expect(await contextsSeen()).toEqual([true, false])
  })

  it.each([
    ['no account has the value', { context_lookup: lookup }, { team: 'T404' }, 'no account of the installation'],
    ['the payload names none', { context_lookup: lookup }, {}, 'context_lookup found no value'],
    ['the definition has no context_lookup', {}, { team: 'T1' }, 'no context_lookup'],
  ])('is unrouted when %s', async (_, block, body, detail) => {
    const { installation } = await accountWith(
      { events: '{"event": "created", "resource": "r", "id": 1}', ...block },
      { team: 'T1' },
    )
    const id = await receive(installation, body)
    await processAll()
    expect(await find(id)).toMatchObject({ state: 'unrouted', error: null })
    expect(await itemsOf(id)).toMatchObject([{ state: 'unrouted', detail: expect.stringContaining(detail) }])
    expect(await eventsOf(id)).toEqual([])
  })

  it('changes the context of the accounts that it is about', async () => {
    const handle_verification = '{"type": "meta", "update_context": {"suspended": body.suspended}}'
    const first = await accountWith({ handle_verification, context_lookup: lookup }, { team: 'T1' })
    const other = await accountOf(first.installation.id, { team: 'T2' })
    await receive(first.installation, { team: 'T1', suspended: true }, { signature: 'valid' })
    await processAll()
    const contexts = await Promise.all(
      [first, other].map(
        async ({ id }) => (await accountDeps.reader.read({ environmentId: own.environmentId, id }))?.account.context,
      ),
    )
    expect(contexts).toMatchObject([{ suspended: true }, {}])
    expect(contexts[1]).not.toHaveProperty('suspended')
  })
})
