import { describe, expect, it } from 'vitest'
import { DaemonService } from '../../gen/patchbay/v1/daemon_service_pb.ts'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import { execute } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import {
  createApiEnvironment,
  createApiTenant,
  freshName,
  idOf,
  type SeededTenant,
  seedTenant,
} from '../support/seeded-tenant.ts'

const {
  registerDaemon: register,
  listDaemons,
  listDaemonGroups,
  claimRuns: claim,
  heartbeat,
  reportProgress: report,
  completeRun: complete,
  failRun: fail,
  releaseRun: release,
} = DaemonService.method
const { createSyncJobRun, getSyncJobRun, stopSyncJobRun } = SyncJobRunService.method

const app = await startTestApp()
const clients = app.clients()
/** The world of tests that are about one run, which they make. */
const shared = await seedTenant(app, app.first)

/** A world of its own environment, so that nothing waits or runs but what a test makes. */
async function makeOwnWorld(): Promise<SeededTenant> {
  return await seedTenant(app, { ...app.first, ...(await createApiEnvironment(app, app.first.teamToken)) })
}

/** A client that speaks for a world. */
function speakFor(client: Client, world: SeededTenant): Client {
  return app.client(client.wire, { token: world.environmentToken })
}

async function registered(client: Client, groupKey: string, fields: JsonObject = {}): Promise<string> {
  const request = { label: 'host-1', group_key: groupKey, ...fields }
  return String((await client.ok(register, request)).daemon_id)
}

async function run(client: Client, world: SeededTenant, groupKey: string, fields: JsonObject = {}): Promise<string> {
  const { syncJobId, integratedAccountId } = world
  const request = { sync_job_id: syncJobId, integrated_account_id: integratedAccountId, daemon_group_key: groupKey }
  return (await client.ok(createSyncJobRun, { ...request, ...fields })).id
}

interface Claimed extends JsonObject {
  readonly lease_id: string
  readonly run: { readonly id: string } & JsonObject
}

async function claimed(client: Client, daemonId: string, fields: JsonObject = {}): Promise<readonly Claimed[]> {
  return (await client.ok(claim, { daemon_id: daemonId, ...fields })).runs as unknown as readonly Claimed[]
}

/** One run of a group of its own, held by a daemon of it. */
async function held(client: Client, world: SeededTenant) {
  const group = freshName('group')
  const daemonId = await registered(client, group)
  // One run of an account is held at a time.
  const accountId = await anotherAccount(client, world)
  await run(client, world, group, { integrated_account_id: accountId })
  const [found] = await claimed(client, daemonId)
  if (found === undefined) throw new Error('nothing to claim')
  return { group, daemonId, accountId, found, key: { run_id: found.run.id, lease_id: found.lease_id } }
}

async function anotherAccount(client: Client, world: SeededTenant, fields: JsonObject = {}): Promise<string> {
  return await idOf(client, IntegratedAccountService.method.createIntegratedAccount, {
    environment_integration_id: world.environmentIntegrationId,
    tenant_id: freshName('tenant'),
    credentials: { api_key: 'k-123' },
    ...fields,
  })
}

function lost(client: Client) {
  return { code: 'ABORTED', reason: 'LEASE_LOST', httpStatus: statusOver(client, 409) }
}

/** Of a run that has read all. */
const DONE = {
  resource: 'repos',
  method: 'list',
  pages: 1,
  fetched: 40,
  delivered: 40,
  failed: 0,
  complete: true,
  claimed_total: 40,
  is_estimate: false,
}
const STATS = {
  resource: 'repos',
  method: 'list',
  pages: 2,
  fetched: 20,
  delivered: 19,
  failed: 1,
  complete: false,
  claimed_total: 40,
  is_estimate: false,
}

describe.each(inTurn(clients))('a daemon over $wire', (client) => {
  it('registers, and gets how to stay alive', async () => {
    const answer = await client.ok(register, { label: 'host-1', group_key: 'warehouse' })
    expect(answer).toEqual({ daemon_id: UUID, heartbeat_seconds: 10, lease_seconds: 30 })
  })

  it('is listed with what it said, newest first', async () => {
    const world = await makeOwnWorld()
    const own = speakFor(client, world)
    const first = await registered(own, 'a')
    const second = await registered(own, 'b', { regions: ['eu', 'apac'], version: '1.2.3', label: 'host-2' })
    const times = { registered_at: TIME, last_seen_at: TIME, status: 'online', running_count: 0 }
    const { environmentId: environment_id } = world

    const both = await own.ok(listDaemons, {})
    expect(both).toEqual({
      daemons: [
        {
          id: second,
          environment_id,
          label: 'host-2',
          group_key: 'b',
          regions: ['eu', 'apac'],
          version: '1.2.3',
          ...times,
        },
        { id: first, environment_id, label: 'host-1', group_key: 'a', regions: [], version: '', ...times },
      ],
      next_page_token: '',
    })
    expect(await own.ok(listDaemons, { group_key: 'a' })).toMatchObject({ daemons: [{ id: first }] })
    const page = await own.ok(listDaemons, { page_size: 1 })
    expect(await own.ok(listDaemons, { page_size: 1, page_token: page.next_page_token ?? '' })).toMatchObject({
      daemons: [{ id: first }],
      next_page_token: '',
    })
  })
})

describe.each(inTurn(clients))('claiming over $wire', (client) => {
  it('hands out a run with all that its execution needs, and no credential', async () => {
    const world = await makeOwnWorld()
    const own = speakFor(client, world)
    await own.ok(EnvironmentIntegrationService.method.updateEnvironmentIntegration, {
      id: world.environmentIntegrationId,
      override: {
        environment_variables: { SITE: 'eu-1', CLIENT_SECRET: 'hush', nested: { password: 'hush', level: 2 } },
        resources: { repos: { list: { id_path: 'meta.key', path: '/repos/{{resources.orgs.login}}' } } },
      },
    })
    const daemonId = await registered(own, 'g')
    const id = await run(own, world, 'g', { args: { owner: 'acme' } })

    const [found, ...others] = await claimed(own, daemonId, { capacity: 5 })

    expect(others).toEqual([])
    expect(found).toEqual({
      run: await own.ok(getSyncJobRun, { id }),
      lease_id: UUID,
      lease_expires_at: TIME,
      attempts_max: 5,
      give_up_after_seconds: 86_400,
      tenant_id: 'acme',
      context: {},
      environment_variables: { SITE: 'eu-1', nested: { level: 2 } },
      resources: [{ id_path: ['meta', 'key'], parent_paths: ['orgs.login'] }],
      values_json: expect.any(String),
    })
    expect(JSON.parse(String(found?.values_json))).toEqual({
      args: { owner: 'acme' },
      resources: [{ resource: 'repos', method: 'list', persist: true }],
      context: {},
      environment_variables: { SITE: 'eu-1', nested: { level: 2 } },
      checkpoint: null,
    })
    expect(found?.run).toMatchObject({ status: 'running', attempt: 1, args: { owner: 'acme' } })
    expect(JSON.stringify(found)).not.toMatch(/hush|k-123/)
  })

  it('hands a run on with its checkpoint, and with one more attempt after a failure alone', async () => {
    const world = await makeOwnWorld()
    const own = speakFor(client, world)
    const { daemonId, key, group } = await held(own, world)
    await own.ok(report, { ...key, checkpoint: { page: 7 }, resource_stats: [STATS] })
    await own.ok(report, { ...key, resource_stats: [STATS] })
    const other = await registered(own, group)

    await own.ok(release, key)
    const [second] = await claimed(own, other)
    expect(second).toMatchObject({ checkpoint: { page: 7 }, run: { attempt: 1, resource_stats: [STATS] } })

    const problem = { error: { reason: 'DISK_FULL', message: 'no space' }, retryable: true }
    await own.ok(fail, { run_id: key.run_id, lease_id: second!.lease_id, ...problem })
    await execute(
      app.database.pool,
      `update run_queue set available_at = now() - interval '1 second' where run_id = :run_id`,
      { run_id: key.run_id },
    )
    const [third] = await claimed(own, daemonId)
    expect(third).toMatchObject({ checkpoint: { page: 7 }, run: { attempt: 2, error: problem.error } })
  })

  it('never hands out two runs of one account, and takes one run unless told otherwise', async () => {
    const world = await makeOwnWorld()
    const own = speakFor(client, world)
    const daemonId = await registered(own, 'g')
    await run(own, world, 'g')
    await run(own, world, 'g')
    const accounts = [await anotherAccount(own, world), await anotherAccount(own, world)]
    for (const integrated_account_id of accounts) await run(own, world, 'g', { integrated_account_id })

    const first = await claimed(own, daemonId)
    const others = await claimed(own, daemonId, { capacity: 100 })

    expect([first.length, others.length]).toEqual([1, 2])
    const used = [...first, ...others].map((each) => each.run.integrated_account_id)
    expect(new Set(used)).toEqual(new Set([world.integratedAccountId, ...accounts]))
  })

  it('keeps to the group and the regions of the daemon', async () => {
    const world = await makeOwnWorld()
    const own = speakFor(client, world)
    const european = await anotherAccount(own, world, { region: 'eu' })
    const inEurope = await run(own, world, 'g', { integrated_account_id: european })
    const elsewhere = await run(own, world, 'g')
    const idsOf = async (fields: JsonObject, group = 'g') =>
      (await claimed(own, await registered(own, group, fields), { capacity: 9 })).map((each) => each.run.id)

    expect(await idsOf({}, 'other')).toEqual([])
    expect(await idsOf({ regions: ['apac'] })).toEqual([])
    expect(await idsOf({ regions: ['eu', 'apac'] })).toEqual([inEurope])
    expect(await idsOf({})).toEqual([elsewhere])
  })

  it('ends a run whose account may not be called, and hands out the next', async () => {
    const world = await makeOwnWorld()
    const own = speakFor(client, world)
    const daemonId = await registered(own, 'g')
    const refused = await run(own, world, 'g')
    const fine = await run(own, world, 'g', { integrated_account_id: await anotherAccount(own, world) })
    const sql = `update integrated_account set status = 'needs_reauth' where id = :integratedAccountId`
    await execute(app.database.pool, sql, { integratedAccountId: world.integratedAccountId })

    const found = await claimed(own, daemonId, { capacity: 2 })

    expect(found.map((each) => each.run.id)).toEqual([fine])
    expect(await own.ok(getSyncJobRun, { id: refused })).toMatchObject({
      status: 'failed',
      error: { reason: 'ACCOUNT_NOT_ACTIVE' },
    })
  })

  it('answers nothing at once unless asked to wait', async () => {
    const daemonId = await registered(client, freshName('empty'))
    expect(await claimed(client, daemonId)).toEqual([])
  })

  it('waits for the first run', async () => {
    const world = await makeOwnWorld()
    const own = speakFor(client, world)
    const waiting = claimed(own, await registered(own, 'g'), { wait_seconds: 14 })
    const id = await run(own, world, 'g')
    expect((await waiting).map((each) => each.run.id)).toEqual([id])
  })

  it('ends the wait of a daemon that begins to drain, and hands it nothing', async () => {
    const world = await makeOwnWorld()
    const own = speakFor(client, world)
    const daemonId = await registered(own, 'g')
    const waiting = claimed(own, daemonId, { wait_seconds: 14 })
    const draining = own.ok(heartbeat, { daemon_id: daemonId, is_draining: true })

    expect(await waiting).toEqual([])
    await draining
    expect(await own.ok(listDaemons, {})).toMatchObject({ daemons: [{ status: 'draining' }] })
    await run(own, world, 'g')
    expect(await claimed(own, daemonId)).toEqual([])
    await own.ok(heartbeat, { daemon_id: daemonId })
    expect(await claimed(own, daemonId)).toHaveLength(1)
  })
})

describe.each(inTurn(clients))('a held run over $wire', (client) => {
  it('shows its progress, and keeps what a report leaves out', async () => {
    const { key } = await held(client, shared)
    const read = () => client.ok(getSyncJobRun, { id: key.run_id })

    expect(await client.ok(report, { ...key, resource_stats: [STATS] })).toEqual({ stop_requested: false })
    expect(await read()).toMatchObject({ status: 'running', resource_stats: [STATS] })
    await client.ok(report, { ...key, checkpoint: { page: 2 } })
    expect(await read()).toMatchObject({ resource_stats: [STATS] })
    const more = { ...STATS, pages: 3 }
    await client.ok(report, { ...key, resource_stats: [more] })
    expect(await read()).toMatchObject({ resource_stats: [more] })
    const { resource_stats } = await client.ok(release, key)
    expect(resource_stats).toMatchObject([more])
  })

  it('says that it waits for the rate limit of the third party while its daemon does', async () => {
    const { key } = await held(client, shared)
    const read = () => client.ok(getSyncJobRun, { id: key.run_id })
    await client.ok(report, { ...key, resource_stats: [STATS], wait_seconds: 60 })
    const waiting = { reason: 'rate_limited', message: expect.stringContaining('third party'), until: TIME }
    expect(await read()).toMatchObject({ status: 'running', waiting, resource_stats: [STATS] })
    await client.ok(report, { ...key, checkpoint: { page: 2 } })
    expect(await read()).toMatchObject({ waiting })
    await client.ok(report, { ...key, wait_seconds: 0 })
    expect(await read()).not.toHaveProperty('waiting')
    await client.ok(release, key)
  })

  it('keeps why listings failed, without the secrets of the account', async () => {
    const tenant = await seedTenant(app, app.first)
    const { key } = await held(client, tenant)
    const parent = { resource: 'repos', id: 'r1', path: 'repos/r1' }
    const error = {
      reason: 'UPSTREAM_ERROR',
      message: 'the third party answered with status 503: flaky',
      resource: 'issues',
      method: 'list',
      parent,
      request: 'GET /repos/r1/issues',
    }
    const warning = { reason: 'RECORD_ID_MISSING', message: 'records have no id' }
    const secret = { ...error, message: 'k-123', element: 'k-123', parent: { ...parent, id: 'k-123', path: 'k-123' } }
    const stats = { ...STATS, errors: [error, secret], errors_omitted: 3, warnings: [warning] }
    await client.ok(report, { ...key, resource_stats: [stats] })
    const masked = { ...error, message: '***', element: '***', parent: { ...parent, id: '***', path: '***' } }
    const shown = { errors: [error, masked], errors_omitted: 3, warnings: [warning] }
    expect(await client.ok(getSyncJobRun, { id: key.run_id })).toMatchObject({ resource_stats: [shown] })
    const failed = await client.ok(fail, { ...key, error: secret })
    expect(failed).toMatchObject({ error: masked, resource_stats: [shown] })
  })

  it('is completed once', async () => {
    const { key } = await held(client, shared)
    const done = { ...DONE, stop_reason: 'short_page' }

    const completed = await client.ok(complete, { ...key, resource_stats: [done] })

    expect(completed).toMatchObject({ status: 'completed', finished_at: TIME, resource_stats: [done] })
    expect(await client.callError(complete, key)).toMatchObject(lost(client))
    expect(await client.ok(getSyncJobRun, { id: key.run_id })).toEqual(completed)
  })

  it.each([
    { what: 'says of a resource that it is not complete', resource_stats: [STATS] },
    { what: 'says nothing', resource_stats: [] },
  ])('is partially completed when its holder $what', async ({ resource_stats }) => {
    const { key } = await held(client, shared)
    expect(await client.ok(complete, { ...key, resource_stats })).toMatchObject({ status: 'partially_completed' })
  })

  it.each([
    {
      what: 'of another resource',
      resource_stats: [{ ...DONE, resource: 'orgs' }],
      field: 'resource_stats[0].resource',
    },
    { what: 'of too many resources', resource_stats: [DONE, DONE], field: 'resource_stats' },
    { what: 'complete with failures', resource_stats: [{ ...DONE, failed: 1 }], field: 'resource_stats[0].complete' },
    {
      what: 'complete at a limit',
      resource_stats: [{ ...DONE, stop_reason: 'max_pages' }],
      field: 'resource_stats[0].complete',
    },
    {
      what: 'complete with less than was claimed',
      resource_stats: [{ ...DONE, fetched: 39 }],
      field: 'resource_stats[0].complete',
    },
  ])('is not completed with counters $what, and stays held', async ({ resource_stats, field }) => {
    const { key } = await held(client, shared)
    expect(await client.callError(complete, { ...key, resource_stats })).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'INVALID_FIELD',
      httpStatus: statusOver(client, 400),
      violations: [expect.objectContaining({ field })],
    })
    expect(await client.ok(complete, { ...key, resource_stats: [DONE] })).toMatchObject({ status: 'completed' })
  })

  it('tells the next one where to begin', async () => {
    const world = await makeOwnWorld()
    const own = speakFor(client, world)
    const { daemonId, key, group, accountId } = await held(own, world)
    const { started_at } = await own.ok(complete, { ...key, resource_stats: [DONE] })
    await run(own, world, group, { integrated_account_id: accountId })
    const previous_run_date = new Date(Date.parse(String(started_at)) - 120_000).toISOString()
    expect(await claimed(own, daemonId)).toMatchObject([{ previous_run_date, resources: [{ previous_run_date }] }])
  })

  it.each([
    { what: 'for good', fields: {}, status: 'failed' },
    { what: 'to be tried again', fields: { retryable: true, wait_seconds: 60 }, status: 'created' },
  ])('fails $what', async ({ fields, status }) => {
    const { key } = await held(client, shared)
    const error = { reason: 'DISK_FULL', message: 'no space left' }

    expect(await client.ok(fail, { ...key, ...fields, error })).toMatchObject({ status, error, attempt: 1 })
    expect(await client.callError(fail, { ...key, error })).toMatchObject(lost(client))
  })

  it('goes back, at once or after a wait, and no attempt is counted', async () => {
    const world = await makeOwnWorld()
    const own = speakFor(client, world)
    const { key, daemonId } = await held(own, world)

    expect(await own.ok(release, { ...key, checkpoint: { at: 1 } })).toMatchObject({ status: 'created', attempt: 0 })
    const [again] = await claimed(own, daemonId)
    expect(again).toMatchObject({ checkpoint: { at: 1 }, run: { attempt: 1 } })
    const newKey = { run_id: key.run_id, lease_id: again!.lease_id }
    expect(await own.ok(release, { ...newKey, wait_seconds: 600 })).toMatchObject({ status: 'rate_limited' })
    expect(await claimed(own, daemonId)).toEqual([])
  })

  it('that was to stop learns of it, and is stopped when it is given back', async () => {
    const { key, daemonId } = await held(client, shared)
    await client.ok(stopSyncJobRun, { id: key.run_id })

    expect(await client.ok(report, { ...key, checkpoint: {} })).toEqual({ stop_requested: true })
    expect(await client.ok(heartbeat, { daemon_id: daemonId, held: [key] })).toMatchObject({
      held: [{ is_lost: false, stop_requested: true }],
    })
    expect(await client.ok(release, key)).toMatchObject({ status: 'stopped' })
  })

  it('lives as long as its holder is heard of', async () => {
    const { key, daemonId } = await held(client, shared)
    const stale = { run_id: key.run_id, lease_id: newId() }
    const unknown = { run_id: newId(), lease_id: newId() }

    const answer = await client.ok(heartbeat, { daemon_id: daemonId, held: [stale, key, unknown] })

    const gone = { is_lost: true, stop_requested: false }
    expect(answer).toEqual({
      held: [
        { ...stale, ...gone },
        { ...key, is_lost: false, stop_requested: false, lease_expires_at: TIME },
        { ...unknown, ...gone },
      ],
    })
  })

  it('is closed to a holder whose lease has passed on, who writes nothing', async () => {
    const world = await makeOwnWorld()
    const own = speakFor(client, world)
    const { key, daemonId } = await held(own, world)
    await own.ok(report, { ...key, checkpoint: { page: 1 }, resource_stats: [STATS] })
    await own.ok(release, key)
    const [next] = await claimed(own, daemonId)
    const before = await own.ok(getSyncJobRun, { id: key.run_id })
    const late = { ...key, checkpoint: { page: 99 }, resource_stats: [{ ...STATS, pages: 99 }] }

    expect(await own.callError(report, late)).toMatchObject(lost(client))
    expect(await own.callError(release, late)).toMatchObject(lost(client))
    const { checkpoint: _, ...end } = late
    expect(await own.callError(complete, end)).toMatchObject(lost(client))
    expect(await own.callError(fail, { ...end, error: { reason: 'LATE' } })).toMatchObject(lost(client))

    expect(await own.ok(getSyncJobRun, { id: key.run_id })).toEqual(before)
    await own.ok(release, { run_id: key.run_id, lease_id: next!.lease_id })
    expect(await claimed(own, daemonId)).toMatchObject([{ checkpoint: { page: 1 } }])
  })
})

describe.each(inTurn(clients))('groups over $wire', (client) => {
  it('are there as soon as somebody registers or something waits, with what holds and waits', async () => {
    const world = await makeOwnWorld()
    const own = speakFor(client, world)
    await own.ok(stopSyncJobRun, { id: world.syncJobRunId })
    const daemonId = await registered(own, 'b.daemons')
    await run(own, world, 'b.daemons')
    await claimed(own, daemonId)
    await run(own, world, 'b.daemons')
    await run(own, world, 'A.waits')
    await registered(own, 'c:idle')
    const none = { daemon_count: 0, running_count: 0, waiting_count: 0 }
    const groups = [
      { group_key: 'A.waits', ...none, waiting_count: 1, oldest_due_at: TIME },
      { group_key: 'b.daemons', daemon_count: 1, running_count: 1, waiting_count: 1, oldest_due_at: TIME },
      { group_key: 'c:idle', ...none, daemon_count: 1 },
    ]

    expect(await own.ok(listDaemonGroups, {})).toEqual({ daemon_groups: groups, next_page_token: '' })
    const first = await own.ok(listDaemonGroups, { page_size: 2 })
    expect(first.daemon_groups).toEqual(groups.slice(0, 2))
    const rest = await own.ok(listDaemonGroups, { page_size: 2, page_token: first.next_page_token ?? '' })
    expect(rest).toEqual({ daemon_groups: groups.slice(2), next_page_token: '' })
    expect(await own.ok(listDaemons, { group_key: 'b.daemons' })).toMatchObject({ daemons: [{ running_count: 1 }] })
  })
})

describe.each(inTurn(clients))('what is of another environment over $wire', (client) => {
  it('is unknown, and stays as it was', async () => {
    const world = await seedTenant(app, await createApiTenant(app))
    const owner = speakFor(client, world)
    const { key, daemonId } = await held(owner, world)
    const before = await owner.ok(getSyncJobRun, { id: key.run_id })
    const error = { reason: 'MINE_NOW' }

    for (const method of [claim, heartbeat]) {
      const foreign = await client.callError(method, { daemon_id: daemonId })
      const unknown = await client.callError(method, { daemon_id: newId() })
      expect(foreign).toMatchObject({ ...unknown, message: expect.any(String), resource: { type: 'daemon' } })
      expect(foreign).toMatchObject({ code: 'NOT_FOUND', reason: 'RESOURCE_NOT_FOUND' })
    }
    for (const [method, fields] of [[report], [complete], [fail, { error }], [release]] as const)
      expect(await client.callError(method, { ...key, ...fields })).toMatchObject({
        code: 'NOT_FOUND',
        reason: 'RESOURCE_NOT_FOUND',
        resource: { type: 'sync_job_run', id: key.run_id },
        httpStatus: statusOver(client, 404),
      })
    const otherTenant = await registered(client, 'g')
    expect(await client.ok(heartbeat, { daemon_id: otherTenant, held: [key] })).toMatchObject({
      held: [{ is_lost: true }],
    })
    expect(await owner.ok(getSyncJobRun, { id: key.run_id })).toEqual(before)
  })

  it('is not handed out, any the group is called', async () => {
    const world = await seedTenant(app, await createApiTenant(app))
    const group = freshName('shared')
    await run(speakFor(client, world), world, group)
    expect(await claimed(client, await registered(client, group))).toEqual([])
  })
})

describe.each(inTurn(clients))('the contract of daemons over $wire', (client) => {
  const ids = { run_id: newId(), lease_id: newId() }

  it.each([
    [register, { label: '', group_key: 'g' }, 'label', 'string.min_len'],
    [register, { label: 'x', group_key: 'a b' }, 'group_key', 'string.pattern'],
    [register, { label: 'x', group_key: 'g', regions: ['moon'] }, 'regions[0]', 'string.in'],
    [register, { label: 'x', group_key: 'g', regions: ['eu', 'eu'] }, 'regions', 'repeated.unique'],
    [claim, { daemon_id: newId(), capacity: 101 }, 'capacity', 'int32.gte_lte'],
    [claim, { daemon_id: newId(), wait_seconds: 26 }, 'wait_seconds', 'int32.gte_lte'],
    [heartbeat, { daemon_id: newId(), held: [{ run_id: 'x', lease_id: newId() }] }, 'held[0].run_id', 'string.uuid'],
    [fail, ids, 'error', 'required'],
    [fail, { ...ids, error: { reason: 'no good' } }, 'error.reason', 'string.pattern'],
    [release, { ...ids, wait_seconds: -1 }, 'wait_seconds', 'int32.gte_lte'],
    [report, { ...ids, wait_seconds: 86_401 }, 'wait_seconds', 'int32.gte_lte'],
    [report, { ...ids, resource_stats: [{ ...STATS, pages: -1 }] }, 'resource_stats[0].pages', 'int32.gte'],
  ] as const)('refuses $1 of $0.name', async (method, request, field, rule) => {
    const rejection = await client.callError(method, request)
    expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'INVALID_FIELD' })
    expect(rejection.violations).toEqual([expect.objectContaining({ field, rule })])
  })
})
