import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { describe, expect, it } from 'vitest'
import { Health as HealthService } from '../../../../gen/grpc/health/v1/health_pb.ts'
import { ApiTokenService } from '../../../../gen/patchbay/v1/api_token_service_pb.ts'
import { DaemonService } from '../../../../gen/patchbay/v1/daemon_service_pb.ts'
import { SyncJobRunService } from '../../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { mintToken } from '../../../../src/platform/tenancy/token-format.ts'
import { startTestApp } from '../../../support/app.ts'
import { createApiEnvironment, createApiTenant, seedTenant } from '../../../support/seeded-tenant.ts'
import { serverStream, unary } from './support/contract.ts'
import { startHarness, WIDGET_ID } from './support/harness.ts'
import { AS_ENVIRONMENT, http1 } from './support/http.ts'
import { ALL_WIRES } from './support/protocols.ts'

const LIMIT = 20
const limits = { PATCHBAY_RATE_LIMIT: String(LIMIT), PATCHBAY_RATE_LIMIT_ADDRESS: String(LIMIT) }
const [app, limited] = [await startTestApp(), await startTestApp(limits)]
let statements: string[] = []
limited.database.pool.on('query', ({ sql }: { sql: string }) => statements.push(sql))

/** Status codes of `count` requests with the token, one after the other, and the statements they cost. */
async function ask(count: number, token: () => string, environmentId?: () => string) {
  statements = []
  const statuses: number[] = []
  for (let asked = 0; asked < count; asked++) {
    const headers = {
      authorization: `Bearer ${token()}`,
      ...(environmentId === undefined ? {} : { 'patchbay-environment': environmentId() }),
    }
    statuses.push((await http1(limited.url, '/sync-job', { headers })).status)
  }
  return { statuses: countsOf(statuses), statements: statements.length }
}

function countsOf(statuses: readonly number[]) {
  return Object.fromEntries(
    Map.groupBy(statuses, (status) => status)
      .entries()
      .map(([status, all]) => [status, all.length]),
  )
}

describe('a request that is rejected', () => {
  it('counts against its token when it names an environment of another team', async () => {
    const { id, environmentToken } = { id: limited.first.environmentId, ...(await createApiTenant(limited)) }
    const { statuses } = await ask(
      LIMIT + 5,
      () => environmentToken,
      () => id,
    )
    expect(statuses).toEqual({ 404: LIMIT, 429: 5 })
  })

  it('counts against nothing when its token turns out to be valid', async () => {
    const { environmentToken } = await createApiEnvironment(limited, limited.first.teamToken)
    expect((await ask(LIMIT, () => environmentToken)).statuses).toEqual({ 200: LIMIT })
    expect((await ask(1, () => limited.first.environmentToken)).statuses).toEqual({ 200: 1 })
  })

  it('counts against its address when its token is unknown, and costs one look-up', async () => {
    const { statuses, statements } = await ask(LIMIT * 2, () => mintToken('environment').token)
    expect(statuses).toEqual({ 401: LIMIT, 429: LIMIT })
    expect(statements).toBeLessThanOrEqual(LIMIT * 2)
  })

  it('leaves those alone who share the address and send a valid token, new or not', async () => {
    const { environmentToken } = await createApiEnvironment(limited, limited.first.teamToken)
    expect((await ask(1, () => environmentToken)).statuses).toEqual({ 200: 1 })
    expect((await ask(1, () => limited.first.environmentToken)).statuses).toEqual({ 200: 1 })
    expect((await ask(1, () => mintToken('environment').token)).statuses).toEqual({ 429: 1 })
  })
})

describe('a token that is revoked', () => {
  /** An environment token, what it sends, and how it is revoked. */
  async function revocable() {
    const admin = app.client('connect', { token: app.first.teamToken })
    const { environmentId: environment_id } = app.first
    const request = { kind: 'environment', environment_id, name: 'revocable', preset: 'full' }
    const { token, id } = await admin.ok(ApiTokenService.method.createApiToken, request)
    return {
      headers: { authorization: `Bearer ${token}` },
      revoke: () => admin.ok(ApiTokenService.method.revokeApiToken, { id }),
    }
  }
  const transport = createGrpcTransport({ baseUrl: app.url })

  it('ends the streams opened with it', async () => {
    const { syncJobRunId: id } = await seedTenant(app, app.first)
    const { headers, revoke } = await revocable()
    const stream = createClient(SyncJobRunService, transport).watchSyncJobRun({ id }, { headers })
    const messages = stream[Symbol.asyncIterator]()
    expect((await messages.next()).value?.syncJobRun).toMatchObject({ id, status: 'created' })
    await revoke()
    expect(await codeOf(messages.next())).toBe(Code.Unauthenticated)
  })

  it('ends the long polls of its daemons', async () => {
    const { headers, revoke } = await revocable()
    const daemons = createClient(DaemonService, transport)
    const { daemonId } = await daemons.registerDaemon({ label: 'host', groupKey: 'idle' }, { headers })
    const poll = codeOf(daemons.claimRuns({ daemonId, waitSeconds: 20 }, { headers }))
    await revoke()
    expect(await poll).toBe(Code.Unauthenticated)
  })
})

describe.each(ALL_WIRES)('requests over $name', (wire) => {
  const inEnvironment = (id: string) => ({ authorization: 'Bearer team', 'patchbay-environment': id })

  it('of one environment wait for their turn, and those of another do not wait behind them', async () => {
    await using harness = await startHarness({ limits: { requestsActiveMax: 4, requestsWaitingMax: 3 } })
    const client = wire.connect(harness.baseUrl)
    const send = (method: string, environmentId: string) =>
      client.send(unary(method), { id: WIDGET_ID }, inEnvironment(environmentId))
    const burst = Array.from({ length: 6 }, () => send('Wait', 'a'))
    // Two are worked on, three wait, and one is too many.
    expect(await Promise.race(burst)).toMatchObject({
      error: { code: 'RESOURCE_EXHAUSTED', reason: 'RATE_LIMITED', retryAfterSeconds: 2 },
    })
    expect(await send('Get', 'b')).not.toHaveProperty('error')
    harness.events.release.resolve()
    const answers = await Promise.all(burst)
    expect(answers.filter((answer) => 'error' in answer)).toHaveLength(1)
    client.close()
  })
})

it('a request that ends while it waits for its turn is never begun', async () => {
  await using harness = await startHarness({ limits: { requestsActiveMax: 2 } })
  const client = ALL_WIRES.find(({ name }) => name === 'REST')?.connect(harness.baseUrl)
  const first = client?.send(unary('Wait'), { id: WIDGET_ID }, AS_ENVIRONMENT)
  await harness.events.waiting.promise
  const ending = { ...AS_ENVIRONMENT, 'x-server-timeout': '0.01' }
  expect(await client?.send(unary('Get'), { id: WIDGET_ID }, ending)).toMatchObject({
    error: { code: 'DEADLINE_EXCEEDED' },
  })
  harness.events.release.resolve()
  await first
  expect(harness.events.calls).toEqual([])
  client?.close()
})

describe('streams', () => {
  /** A stream of the test contract that stays open, once its first message is there. */
  async function open(transport: Transport, headers: Readonly<Record<string, string>>, signal: AbortSignal) {
    const request = (async function* () {
      yield { count: 1, afterwards: 'wait' } as never
    })()
    const { message } = await transport.stream(serverStream('Watch'), signal, undefined, headers, request)
    await message[Symbol.asyncIterator]().next()
  }
  const inEnvironment = (id: string) => ({ authorization: 'Bearer team', 'patchbay-environment': id })

  it('of one environment leave places for another, and give theirs back', async () => {
    await using harness = await startHarness({ limits: { streamsMax: 4 } })
    const transport = createGrpcTransport({ baseUrl: harness.baseUrl })
    const [first, others] = [new AbortController(), new AbortController()]
    await open(transport, inEnvironment('a'), first.signal)
    await open(transport, inEnvironment('a'), others.signal)
    expect(await codeOf(open(transport, inEnvironment('a'), others.signal))).toBe(Code.ResourceExhausted)
    await open(transport, inEnvironment('b'), others.signal)
    first.abort()
    await expect.poll(() => codeOf(open(transport, inEnvironment('a'), others.signal))).toBeUndefined()
    others.abort()
  })

  it('without a token have places of their own', async () => {
    await using harness = await startHarness({ limits: { publicStreamsMax: 2, streamsMax: 2 } })
    const transport = createGrpcTransport({ baseUrl: harness.baseUrl })
    const health = createClient(HealthService, transport)
    const aborter = new AbortController()
    const watch = () => health.watch({}, { signal: aborter.signal })[Symbol.asyncIterator]().next()
    expect(await codeOf(watch())).toBeUndefined()
    expect(await codeOf(watch())).toBe(Code.ResourceExhausted)
    await open(transport, AS_ENVIRONMENT, aborter.signal)
    aborter.abort()
  })
})

/** The code of the error that the work ends with; `undefined` when it succeeds. */
async function codeOf(work: Promise<unknown>): Promise<Code | undefined> {
  return await work.then(
    () => undefined,
    (error) => ConnectError.from(error).code,
  )
}
