import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import type { ScriptedExchange } from '../../../support/upstream.ts'
import { PUBLIC_URL, subscriptionsFixture } from './fixture.ts'

const fixture = await subscriptionsFixture()
const { upstream, worker, subscribeTo, only, overview, pass, recreate, setStatus, eventsOf, delaySeconds } = fixture

const HOUR = 3_600
const ENDS_IN_AN_HOUR = '$fromMillis($millis() + 3600000)'
const request = (method: string, path: string, body?: JsonObject): JsonObject => ({
  type: 'request',
  config: { method, path, ...(body === undefined ? {} : { body }) },
})
const CREATE = request('POST', '/hooks', { url: '{{connection.webhook_url}}' })
const RENEW = request('POST', '/hooks/{{subscription.id}}/renew')
const DELETE = request('DELETE', '/hooks/{{subscription.id}}')
const FIND = request('GET', '/hooks')
const EXPIRING: JsonObject = { create: CREATE, id: 'result.id', expires: ENDS_IN_AN_HOUR }

const created = (id: Json, status = 201): ScriptedExchange => ({
  request: 'POST /hooks',
  answer: { status, json: { id } },
})
const answered = (line: string, status: number, json: Json = {}): ScriptedExchange => ({
  request: line,
  answer: { status, json },
})

async function work(times = 1): Promise<void> {
  for (let time = 0; time < times; time++) await worker().runOnce()
}

const errorsOf = async (id: string) => (await eventsOf(id)).filter(({ name }) => name === 'webhook_error')

describe('a subscription', () => {
  it('is created once the account is active, with its address', async () => {
    const { id } = await subscribeTo({ create: CREATE, id: 'result.id' })
    expect(await only(id)).toMatchObject({ status: 'creating', externalId: null })
    upstream.script({
      request: 'POST /hooks',
      body: { url: `${PUBLIC_URL}/integrated-account-webhook/${id}` },
      answer: { status: 201, json: { id: 'hook-1' } },
    })
    await work()
    expect(await only(id)).toMatchObject({
      status: 'active',
      externalId: 'hook-1',
      expiresAt: null,
      nextAttemptAt: null,
      error: '',
    })
    expect(await worker().runOnce()).toBe(false)
  })

  it('has the address of the installation where the definition says so', async () => {
    const account = await subscribeTo({ create: CREATE, id: 'result.id', scope: 'installation' })
    upstream.script({
      request: 'POST /hooks',
      body: { url: `${PUBLIC_URL}/environment-integration-webhook/${account.environmentIntegrationId}` },
      answer: { json: { id: 1 } },
    })
    await work()
    expect(await only(account.id)).toMatchObject({ status: 'active', externalId: 1 })
  })

  it('is not created for a sandbox account, nor without the block', async () => {
    const { id } = await subscribeTo(EXPIRING, {}, { isSandbox: true })
    expect(await overview(id)).toEqual({ subscriptions: [], activity: undefined })
    await expect(recreate(id)).rejects.toMatchObject({ reason: 'SANDBOX_ACCOUNT_READ_ONLY' })
    const { id: plain } = await fixture.connectTo({})
    await expect(recreate(plain)).rejects.toMatchObject({ reason: 'METHOD_NOT_DEFINED' })
    expect(await worker().runOnce()).toBe(false)
  })

  it('is renewed when a fifth of its life is left, and earlier by jitter', async () => {
    const { id } = await subscribeTo({ ...EXPIRING, renew: RENEW })
    upstream.script(created('a'))
    await work()
    expect(await delaySeconds(id)).toBeCloseTo(0.8 * HOUR, -2)
    await pass(id, 0.85 * HOUR * 1_000)
    upstream.script(answered('POST /hooks/a/renew', 200, { id: 'a' }))
    await worker({ random: () => 1 }).runOnce()
    expect(await only(id)).toMatchObject({ status: 'active', externalId: 'a' })
    expect(await delaySeconds(id)).toBeCloseTo(0.7 * HOUR, -2)
  })

  it.each([404, 410])('is created anew when the renewal answers %i', async (status) => {
    const { id } = await subscribeTo({ ...EXPIRING, renew: RENEW })
    upstream.script(created('a'))
    await work()
    await pass(id, 0.9 * HOUR * 1_000)
    upstream.script(answered('POST /hooks/a/renew', status), created('b'))
    await work(2)
    expect(await only(id)).toMatchObject({ status: 'active', externalId: 'b', error: '' })
    expect(await errorsOf(id)).toEqual([])
  })

  it('is created anew when it ended before it could be renewed', async () => {
    const { id } = await subscribeTo({ ...EXPIRING, renew: RENEW, delete: DELETE })
    upstream.script(created('a'))
    await work()
    await pass(id, 2 * HOUR * 1_000)
    upstream.script(created('b'), answered('DELETE /hooks/a', 404))
    await work()
    expect(await only(id)).toMatchObject({ externalId: 'b' })
  })

  it('that cannot be renewed is replaced before its end: the old one is deleted after the new one exists', async () => {
    const { id } = await subscribeTo({ ...EXPIRING, delete: DELETE })
    upstream.script(created('a'))
    await work()
    await pass(id, 0.9 * HOUR * 1_000)
    upstream.script(created('b'), answered('DELETE /hooks/a', 204))
    await work()
    expect(upstream.requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'DELETE'])
    expect(await only(id)).toMatchObject({ externalId: 'b' })
  })

  it('that cannot be deleted now is deleted with the next request', async () => {
    const { id } = await subscribeTo({ ...EXPIRING, delete: DELETE })
    upstream.script(created('a'))
    await work()
    await pass(id, 0.9 * HOUR * 1_000)
    upstream.script(created('b'), answered('DELETE /hooks/a', 503))
    await work()
    await pass(id, 0.9 * HOUR * 1_000)
    upstream.script(answered('DELETE /hooks/a', 204), created('c'), answered('DELETE /hooks/b', 204))
    await work()
    expect(await only(id)).toMatchObject({ externalId: 'c' })
  })

  it('without an end is checked daily, where it can be renewed', async () => {
    const { id } = await subscribeTo({
      create: CREATE,
      id: 'result.id',
      renew: request('GET', '/hooks/{{subscription.id}}'),
    })
    upstream.script(created('a'))
    await work()
    expect(await delaySeconds(id)).toBeCloseTo(24 * HOUR, -2)
    await pass(id, 24 * HOUR * 1_000)
    upstream.script(answered('GET /hooks/a', 200, { id: 'a' }))
    await work()
    expect(await only(id)).toMatchObject({ status: 'active' })
  })

  it('of each event is one of its own, with the name of the event', async () => {
    const create = request('POST', '/hooks', { topic: '{{subscription.event}}', all: '{{subscription.events}}' })
    const block = { create, id: 'result.id', events: ['orders', 'refunds'], one_per_event: true }
    const { id } = await subscribeTo(block)
    const exchange = (topic: string, hook: string) => ({
      request: 'POST /hooks',
      body: { topic, all: [topic] },
      answer: { json: { id: hook } },
    })
    upstream.script(exchange('orders', 'o'), exchange('refunds', 'r'))
    await Promise.all([work(), work()])
    // A claim passes over rows that the settlement of the other one holds; then there is one left.
    await work()
    const { subscriptions } = await overview(id)
    expect(subscriptions.map(({ event, externalId }) => [event, externalId])).toEqual([
      ['orders', 'o'],
      ['refunds', 'r'],
    ])
    expect((await fixture.load(id)).access.subscription).toMatchObject({ id: { orders: 'o', refunds: 'r' } })
  })

  it('has another attempt id for each request, and an id with members', async () => {
    const create = request('POST', '/hooks', { channel: '{{subscription.attempt_id}}' })
    const stop = request('POST', '/stop', { channel: '{{subscription.id.channel}}' })
    const block = {
      create,
      delete: stop,
      id: '{"channel": subscription.attempt_id, "resource": result.r}',
      expires: 'result.ends',
    }
    const { id } = await subscribeTo(block)
    upstream.script({ request: 'POST /hooks', answer: { json: { r: 'x', ends: String(Date.now() + 3_600_000) } } })
    await work()
    const { externalId, expiresAt } = await only(id)
    const [sent] = upstream.requests.map(({ body }) => JSON.parse(body).channel)
    expect(externalId).toEqual({ channel: sent, resource: 'x' })
    expect(expiresAt?.getTime()).toBeGreaterThan(Date.now())
    await pass(id, 0.9 * HOUR * 1_000)
    upstream.script(
      { request: 'POST /hooks', answer: { json: { r: 'y' } } },
      { request: 'POST /stop', body: { channel: sent }, answer: {} },
    )
    await work()
    expect(JSON.parse(upstream.requests[1]?.body ?? '').channel).not.toBe(sent)
  })
})

describe('a subscription under a condition', () => {
  it('is created when it holds, and deleted when it no longer does', async () => {
    const when = 'subscription.event in context.webhooks'
    const { id } = await subscribeTo({
      create: CREATE,
      delete: DELETE,
      id: 'result.id',
      events: ['a', 'b'],
      one_per_event: true,
      when,
    })
    await work(2)
    const statuses = async () => (await overview(id)).subscriptions.map(({ status }) => status)
    expect(await statuses()).toEqual(['none', 'none'])
    await fixture.update({ id, context: { webhooks: ['b'] } })
    await pass(id, HOUR * 1_000)
    upstream.script(created('hook-b'))
    await work(2)
    expect(await statuses()).toEqual(['none', 'active'])
    await fixture.update({ id, context: { webhooks: null } })
    await recreate(id)
    upstream.script(answered('DELETE /hooks/hook-b', 204))
    await work(2)
    expect(await statuses()).toEqual(['none', 'none'])
  })
})

describe('the secret of a subscription', () => {
  const withSecret = request('POST', '/hooks', { secret: '{{subscription.secret}}' })

  it.each([
    ['hex32', /^[0-9a-f]{64}$/],
    ['base64_32', /^[\w+/]{43}=$/],
  ])('%s is made before the first request, kept over attempts and shown nowhere', async (secret, pattern) => {
    const { id } = await subscribeTo({ create: withSecret, id: 'result.id', secret })
    upstream.script(answered('POST /hooks', 503), created('a'))
    await work()
    await pass(id, HOUR * 1_000)
    await work()
    const [first, second] = upstream.requests.map(({ body }) => JSON.parse(body).secret)
    expect(first).toMatch(pattern)
    expect(second).toBe(first)
    expect((await fixture.load(id)).access.credentials).toMatchObject({ subscription: { secret: first } })
    expect(JSON.stringify([await fixture.read(id), await overview(id), await eventsOf(id)])).not.toContain(first)
  })

  it('is read from the response, where the third party makes it', async () => {
    const { id } = await subscribeTo({ create: CREATE, id: 'result.id', secret: { expression: 'result.key' } })
    upstream.script({ request: 'POST /hooks', answer: { json: { id: 1, key: 'theirs' } } })
    await work()
    expect((await fixture.load(id)).access.credentials).toMatchObject({ subscription: { secret: 'theirs' } })
    expect(JSON.stringify(await overview(id))).not.toContain('theirs')
  })

  it('is masked in what the third party says', async () => {
    const { id } = await subscribeTo({ create: withSecret, id: 'result.id', secret: 'hex32' })
    upstream.script(answered('POST /hooks', 400, { message: 'no' }))
    await work()
    const secret = JSON.parse(upstream.requests[0]?.body ?? '').secret
    await recreate(id)
    upstream.script(answered('POST /hooks', 400, { message: `${secret} is not allowed` }))
    await work()
    expect(await only(id)).toMatchObject({ error: expect.stringContaining('is not allowed') })
    expect((await only(id)).error).not.toContain(secret)
  })
})

describe('a failed request', () => {
  it('that is rejected is announced once, leaves the account active, and is tried again', async () => {
    const { id } = await subscribeTo(EXPIRING)
    upstream.script(answered('POST /hooks', 403, { message: 'not permitted' }))
    await work()
    expect(await only(id)).toMatchObject({ status: 'failed', error: expect.stringContaining('not permitted') })
    expect((await only(id)).failedAt).not.toBeNull()
    await pass(id, 24 * HOUR * 1_000)
    upstream.script(answered('POST /hooks', 403, { message: 'still not' }))
    await work()
    expect(await errorsOf(id)).toMatchObject([
      { payload: { id, webhook_subscription: { event: '', last_error: expect.stringContaining('not permitted') } } },
    ])
    expect((await fixture.read(id)).status).toBe('active')
    await pass(id, 24 * HOUR * 1_000)
    upstream.script(created('a'))
    await work()
    expect(await only(id)).toMatchObject({ status: 'active', failedAt: null, error: '' })
  })

  it('that is rejected for its credentials does not ask for new ones', async () => {
    const { id } = await subscribeTo(EXPIRING)
    upstream.script(answered('POST /hooks', 401))
    await work()
    expect((await fixture.read(id)).status).toBe('active')
    expect(await only(id)).toMatchObject({ status: 'failed' })
  })

  it('without an answer is repeated, and counts as failed after the fifth', async () => {
    const { id } = await subscribeTo(EXPIRING)
    for (let attempt = 1; attempt <= 5; attempt++) {
      upstream.script(answered('POST /hooks', 503))
      await work()
      expect(await only(id)).toMatchObject({ status: attempt < 5 ? 'creating' : 'failed' })
      expect(await errorsOf(id)).toHaveLength(attempt < 5 ? 0 : 1)
      await pass(id, 24 * HOUR * 1_000)
    }
  })

  it('of a renewal is repeated several times before the end', async () => {
    const { id } = await subscribeTo({ ...EXPIRING, renew: RENEW })
    upstream.script(created('a'))
    await work()
    await pass(id, 0.99 * HOUR * 1_000)
    upstream.script(answered('POST /hooks/a/renew', 503))
    await work()
    expect(await delaySeconds(id)).toBeLessThan(0.01 * HOUR)
    expect(await only(id)).toMatchObject({ status: 'renewing', externalId: 'a' })
  })

  it('whose response was lost finds what it had created', async () => {
    const { id } = await subscribeTo({
      create: CREATE,
      find: FIND,
      id: '$type(result) = "array" ? result[0].id : result.id',
    })
    upstream.script({ request: 'POST /hooks', answer: { hangUp: true } })
    await work()
    await pass(id, HOUR * 1_000)
    upstream.script(answered('GET /hooks', 200, [{ id: 'a' }]))
    await work()
    expect(await only(id)).toMatchObject({ status: 'active', externalId: 'a' })
  })

  it.each([
    ['the response names nothing', { id: 'result.nothing' }, 'does not name'],
    ['the end is no time', { expires: '"tomorrow"' }, 'no time'],
  ])('because %s says so', async (_what, keys, error) => {
    const { id } = await subscribeTo({ ...EXPIRING, ...keys })
    upstream.script(created('a'))
    await work()
    expect(await only(id)).toMatchObject({ status: 'failed', error: expect.stringContaining(error) })
  })
})

describe('subscriptions of an account', () => {
  it('wait while it is not active, which counts as no attempt', async () => {
    const { id } = await subscribeTo(EXPIRING)
    await setStatus(id, 'needs_reauth')
    for (let time = 0; time < 7; time++) {
      await work()
      await pass(id, HOUR * 1_000)
    }
    expect(await only(id)).toMatchObject({ status: 'creating', failedAt: null })
    await setStatus(id, 'active')
    upstream.script(created('a'))
    await work()
    expect(await only(id)).toMatchObject({ status: 'active' })
  })

  it('are checked when it is connected again', async () => {
    const { id } = await subscribeTo({ ...EXPIRING, renew: RENEW })
    upstream.script(created('a'))
    await work()
    await fixture.database.transaction((tx) => fixture.deps.subscriptions.schedule(tx, fixture.refOf(id)))
    upstream.script(answered('POST /hooks/a/renew', 200, { id: 'a' }))
    await work()
    expect(await only(id)).toMatchObject({ status: 'active' })
  })

  it('are created anew by hand, although they work; where one is in the way of the other, after its deletion', async () => {
    const { id } = await subscribeTo({ ...EXPIRING, renew: RENEW, delete: DELETE })
    upstream.script(created('a'))
    await work()
    await recreate(id)
    upstream.script(
      { request: 'POST /hooks', answer: { status: 422, json: { message: 'exists' } } },
      answered('DELETE /hooks/a', 204),
      created('b'),
      answered('DELETE /hooks/a', 404),
    )
    await work()
    expect(await only(id)).toMatchObject({ status: 'active', externalId: 'b' })
  })

  it('are made by one worker at a time, and by another one when the first has died', async () => {
    const { id } = await subscribeTo(EXPIRING)
    upstream.script({ request: 'POST /hooks', answer: { json: { id: 'a' } } })
    expect(await Promise.all([worker().runOnce(), worker().runOnce()])).toContain(false)
    expect(await only(id)).toMatchObject({ externalId: 'a' })
    expect(await worker({ regions: ['eu'] }).runOnce()).toBe(false)
  })
})
