import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node'
import { beforeAll, describe, expect, it } from 'vitest'
import { SyncJobRunService } from '../../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { newId, systemClock } from '../../../../src/foundation/base/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { createApiServer } from '../../../../src/server/api/server.ts'
import { Health } from '../../../../src/server/api/services/health.ts'
import { syncJobRunService } from '../../../../src/server/api/services/sync-job-run.ts'
import { type ResourceStats, RunQueue, RunWatch } from '../../../../src/sync/runs/index.ts'
import { daemonQueueGroup } from '../../../../src/sync/runs/run.ts'
import { startTestApp } from '../../../support/app.ts'
import { inTurn } from '../../../support/case-count.ts'
import { createApiEnvironment, type SeededTenant, seedTenant } from '../../../support/seeded-tenant.ts'

const app = await startTestApp()
const queue = new RunQueue({ database: app.database, random: () => 0.5 })
const STATS: ResourceStats = {
  resource: 'repos',
  method: 'list',
  pages: 1,
  fetched: 100,
  delivered: 100,
  failed: 0,
  complete: false,
}

const WIRES: readonly (readonly [name: string, createTransport: (baseUrl: string) => Transport])[] = [
  ['gRPC', (baseUrl) => createGrpcTransport({ baseUrl })],
  ['gRPC-Web', (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' })],
  ['Connect, binary', (baseUrl) => createConnectTransport({ baseUrl, httpVersion: '2', useBinaryFormat: true })],
  ['Connect, JSON', (baseUrl) => createConnectTransport({ baseUrl, httpVersion: '1.1' })],
]

let world: SeededTenant
beforeAll(async () => {
  world = await seedTenant(app, app.first)
})

/** A run that waits in a group of its own, so that whoever claims there gets it. */
async function waitingRun() {
  const group = newId()
  const request = { sync_job_id: world.syncJobId, integrated_account_id: world.integratedAccountId }
  const { id } = await app
    .client('rest')
    .ok(SyncJobRunService.method.createSyncJobRun, { ...request, daemon_group_key: group })
  const claim = async () => {
    const claimed = { group: daemonQueueGroup(world.environmentId, group), holder: 'daemon', limit: 1 }
    const [lease] = await queue.claim(claimed)
    if (lease === undefined) throw new Error('nothing to claim')
    return lease
  }
  return { id, claim }
}

function watcher(transport: Transport, id: string, { token = world.environmentToken, ...options } = {} as Options) {
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` }
  const stream = createClient(SyncJobRunService, transport).watchSyncJobRun({ id }, { headers, ...options })
  const messages = stream[Symbol.asyncIterator]()
  return {
    next: async () => (await messages.next()).value?.syncJobRun,
    isDone: async () => (await messages.next()).done,
    /** The code and text of the rejection that comes next. */
    rejection: async () => {
      const error = await messages.next().then(
        () => undefined,
        (reason) => ConnectError.from(reason),
      )
      return [error?.code, error?.rawMessage]
    },
  }
}

interface Options {
  readonly token?: string
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
}

describe.each(inTurn(WIRES))('following a run over %s', (_, createTransport) => {
  const transport = createTransport(app.url)

  it('shows its progress while it runs, and ends with it', async () => {
    const { id, claim } = await waitingRun()
    const run = watcher(transport, id)
    expect(await run.next()).toMatchObject({ id, status: 'created', resourceStats: [] })
    const lease = await claim()
    expect(await run.next()).toMatchObject({ status: 'running' })
    await queue.save(lease, {}, [STATS])
    expect(await run.next()).toMatchObject({ resourceStats: [{ pages: 1, fetched: 100, delivered: 100 }] })
    await queue.save(lease, {}, [{ ...STATS, pages: 2, fetched: 150, delivered: 150 }])
    expect(await run.next()).toMatchObject({ resourceStats: [{ pages: 2, fetched: 150, delivered: 150 }] })
    await queue.settle([
      { ...lease, outcome: { kind: 'failed', error: { reason: 'UPSTREAM_ERROR', message: 'broke' } } },
    ])
    expect(await run.next()).toMatchObject({ status: 'failed', error: { message: 'broke' }, attempt: 1 })
    expect(await run.isDone()).toBe(true)
  })

  it('answers for a run of another caller like for none', async () => {
    const { id } = await waitingRun()
    const { environmentToken: token } = await createApiEnvironment(app, world.teamToken)
    const unknown = newId()
    const none = await watcher(transport, unknown, { token }).rejection()
    expect(none[0]).toBe(Code.NotFound)
    const [code, text] = await watcher(transport, id, { token }).rejection()
    expect([code, String(text).replace(id, unknown)]).toEqual(none)
  })

  it('is rejected without a token, and without an id', async () => {
    expect((await watcher(transport, newId(), { token: '' }).rejection())[0]).toBe(Code.Unauthenticated)
    expect((await watcher(transport, 'x').rejection())[0]).toBe(Code.InvalidArgument)
  })

  it("ends at its client's deadline", async () => {
    const run = watcher(transport, (await waitingRun()).id, { timeoutMs: 1_500 })
    await run.next()
    expect((await run.rejection())[0]).toBe(Code.DeadlineExceeded)
  })
})

describe('a server', () => {
  it('that is drained sends its watchers to another, which goes on', async () => {
    const { id, claim } = await waitingRun()
    const server = watchServer()
    const { port } = await server.listen('127.0.0.1', 0)
    const leaving = watcher(createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }), id)
    await leaving.next()
    await claim()
    expect(await leaving.next()).toMatchObject({ status: 'running' })
    const drained = server.drain(5_000)
    expect((await leaving.rejection())[0]).toBe(Code.Unavailable)
    await drained
    const staying = watcher(createGrpcTransport({ baseUrl: app.url }), id)
    expect(await staying.next()).toMatchObject({ status: 'running' })
  })
})

/** A second server over the same database, which does not wait long for its streams. */
function watchServer() {
  const { database } = app
  const { teamId, environmentId } = world
  const principal = {
    kind: 'environment',
    tokenId: newId(),
    teamId,
    environmentId,
    isOperator: false,
    scopes: undefined,
  } as const
  const service = syncJobRunService({
    database,
    secrets: createSecretStore(parseKeyRing(generateKeyRingText('test'))),
    runs: { queue, assertMapped: async () => undefined, resolveArgs: async (_, given) => given },
    runWatch: new RunWatch({ database, clock: systemClock }),
  })
  return createApiServer({
    services: [service],
    authenticator: {
      parseToken: (hash) => ({ hash, knownId: principal.tokenId }),
      authenticate: async () => principal,
    },
    clock: systemClock,
    logger: silentLogger,
    health: new Health([service.desc.typeName]),
    limits: { streamDrainMs: 10 },
  })
}
