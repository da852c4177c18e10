import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { Json } from '../../../../src/foundation/json/index.ts'
import { RunQueue } from '../../../../src/sync/runs/index.ts'
import { startTestApp } from '../../../support/app.ts'
import { testDatabase } from '../../../support/database.ts'
import { EVENTUALLY } from '../../../support/eventually.ts'
import { expectJson, type JsonAnswer } from '../../../support/rest.ts'
import { seedChain } from '../../../support/seed.ts'
import { startPagedUpstream, type UpstreamScript } from './support/paged-upstream.ts'
import { type RunningDaemon, startDaemon } from './support/running-daemon.ts'

const app = await startTestApp({ PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' })
const { url: storeUrl } = await testDatabase()
const store = new pg.Pool({ connectionString: storeUrl, max: 2 })
const directory = mkdtempSync(join(tmpdir(), 'patchbay-store-'))
const token = app.first.environmentToken

afterAll(async () => {
  await store.end()
  rmSync(directory, { recursive: true })
})

const ENDED = 'a run ended here'
let groups = 0

/** An account of a third party, and the daemons that sync it, in a schema of their own. */
async function makeCustomer(script: UpstreamScript) {
  groups++
  const [group, schema] = [`group-${groups}`, `s${groups}`]
  const upstream = await startPagedUpstream(script)
  const { teamToken, environmentToken, environmentId } = app.first
  const tokens = { teamToken, environmentToken, environmentId }
  const chain = await seedChain({ url: app.url, ...tokens, upstreamUrl: upstream.url, name: `crm-${groups}` })
  const { environmentIntegrationId, integratedAccountId } = chain
  const override = { pagination: { config: { limit: 3, total_path: 'total' } } }
  await call('PATCH', `/environment-integration/${environmentIntegrationId}`, { override })
  await execute(app.database.pool, `update integrated_account set status = 'active' where id = :integratedAccountId`, {
    integratedAccountId,
  })
  return {
    upstream,
    schema,
    daemon: (rest: { readonly store?: string } = {}): RunningDaemon =>
      startDaemon({ url: app.url, token, group, store: storeUrl, schema, ...rest }),
    async run(fields: object = {}): Promise<string> {
      const subject = { sync_job_id: chain.syncJobId, integrated_account_id: integratedAccountId }
      return (await call('POST', '/sync-job-run', { ...subject, daemon_group_key: group, ...fields })).id
    },
    changeJob: (fields: object) => call('PATCH', `/sync-job/${chain.syncJobId}`, fields),
    async rows(table: string): Promise<readonly Json[]> {
      const { rows } = await store.query(`select record from ${schema}."${table}" order by (record->>'id')::integer`)
      return rows.map(({ record }) => record)
    },
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  }
}

async function call(method: string, path: string, body?: object): Promise<JsonAnswer> {
  return await expectJson(method, `${app.url}${path}`, token, body)
}

function contacts(count: number, fields: object = {}): readonly Json[] {
  return Array.from({ length: count }, (_, index) => ({ id: index + 1, name: `Contact ${index + 1}`, ...fields }))
}

function oneList(records: readonly Json[]): UpstreamScript['records'] {
  return (path) => (path === '/contacts' ? records : undefined)
}

describe('a daemon', () => {
  it('stores every record of a run of its group and reports the outcome', async () => {
    await using customer = await makeCustomer({ records: oneList(contacts(8)) })
    const id = await customer.run()
    await using daemon = customer.daemon()
    await daemon.logged(ENDED, { run_id: id, outcome: 'completed' })
    expect(await customer.rows('contacts')).toEqual(contacts(8))
    expect(await call('GET', `/sync-job-run/${id}`)).toMatchObject({
      status: 'completed',
      attempt: 1,
      resource_stats: [
        {
          resource: 'contacts',
          fetched: 8,
          delivered: 8,
          claimed_total: 8,
          distinct: 8,
          duplicates: 0,
          complete: true,
        },
      ],
    })
  })

  it('stores children of listed parents, and skips those whose listing fails', async () => {
    const records = (path: string) => {
      if (path === '/contacts') return contacts(4)
      const [, , parent] = path.split('/')
      return parent === '3' ? undefined : [{ id: Number(parent) * 10, of: Number(parent) }]
    }
    await using customer = await makeCustomer({ records })
    await customer.changeJob({
      resources: [
        { resource: 'contacts', method: 'list' },
        { resource: 'notes', method: 'list', depends_on: 'contacts', persist: true },
      ],
    })
    const id = await customer.run()
    await using daemon = customer.daemon()
    await daemon.logged(ENDED, { run_id: id, outcome: 'partially_completed' })
    expect(await customer.rows('notes')).toEqual([1, 2, 4].map((of) => ({ id: of * 10, of })))
    expect((await daemon.logged('a listing failed')).fields).toMatchObject({
      resource: 'notes',
      reason: 'UPSTREAM_ERROR',
    })
    expect(await call('GET', `/sync-job-run/${id}`)).toMatchObject({
      status: 'partially_completed',
      resource_stats: [
        { resource: 'contacts', fetched: 4, delivered: 0, failed: 0 },
        { resource: 'notes', fetched: 3, delivered: 3, failed: 1, complete: false },
      ],
    })
  })

  it('fails a run at the first error with fail_fast', async () => {
    await using customer = await makeCustomer({ records: () => undefined })
    const id = await customer.run({ error_handling: 'fail_fast' })
    await using daemon = customer.daemon()
    await daemon.logged(ENDED, { run_id: id, outcome: 'failed' })
    expect(await call('GET', `/sync-job-run/${id}`)).toMatchObject({
      status: 'failed',
      error: { reason: 'UPSTREAM_ERROR', message: expect.stringContaining('contacts.list') },
    })
  })

  it('updates stored records, and asks only for those changed since', async () => {
    let version = 1
    await using customer = await makeCustomer({ records: () => contacts(2, { version }) })
    const query = { since: '{{previous_run_date}}' }
    await customer.changeJob({ resources: [{ resource: 'contacts', method: 'list', persist: true, query }] })
    await using daemon = customer.daemon()
    for (; version <= 2; version++) {
      const id = await customer.run()
      await daemon.logged(ENDED, { run_id: id, outcome: 'completed' })
    }
    expect(await customer.rows('contacts')).toEqual(contacts(2, { version: 2 }))
    expect(customer.upstream.requests[0]).not.toContain('since')
    expect(customer.upstream.requests.at(-1)).toMatch(/since=20\d\d-/)
  })

  it('releases its run when it drains, and the next daemon resumes after the last page', async () => {
    const [reached, mayGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    await using customer = await makeCustomer({
      records: oneList(contacts(14)),
      async beforePage(_, page) {
        if (page !== 4) return
        reached.resolve()
        await mayGoOn.promise
      },
    })
    const id = await customer.run()
    await using first = customer.daemon()
    await reached.promise
    void first.daemon.drain(60_000)
    mayGoOn.resolve()
    await first.ended
    expect(await first.logged(ENDED)).toMatchObject({ fields: { run_id: id, outcome: 'released' } })
    expect(await call('GET', `/sync-job-run/${id}`)).toMatchObject({ status: 'created' })
    const before = customer.upstream.requests.length
    await using second = customer.daemon()
    await second.logged(ENDED, { run_id: id, outcome: 'completed' })
    expect(await customer.rows('contacts')).toEqual(contacts(14))
    expect(customer.upstream.requests[before]).toMatch(/page=[2-5]/)
    expect(await call('GET', `/sync-job-run/${id}`)).toMatchObject({
      attempt: 1,
      resource_stats: [{ fetched: 14, delivered: 14, duplicates: 0, complete: true }],
    })
  })

  it('writes nothing more once another daemon holds its run', async () => {
    const [reached, mayGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let version = 'first'
    await using customer = await makeCustomer({
      records: () => contacts(8, { version }),
      async beforePage(_, page) {
        if (page !== 3 || version !== 'first') return
        reached.resolve()
        await mayGoOn.promise
      },
    })
    const id = await customer.run()
    await using stale = customer.daemon()
    await reached.promise
    version = 'second'
    // Again where a heartbeat has extended the lease before it was seen to have ended.
    await vi.waitFor(async () => {
      const expire = `update run_lease set expires_at = now() - interval '1 second' where run_id = :id`
      await execute(app.database.pool, expire, { id })
      await new RunQueue({ database: app.database, random: Math.random }).reap()
      expect(await call('GET', `/sync-job-run/${id}`)).toMatchObject({ status: 'created' })
    }, EVENTUALLY)
    await using next = customer.daemon()
    // Whichever claims it: the stale one may, for a second attempt, once a heartbeat has told it that the first is lost.
    const completed = { run_id: id, outcome: 'completed' }
    await Promise.race([next.logged(ENDED, completed), stale.logged(ENDED, completed)])
    mayGoOn.resolve()
    await stale.logged(ENDED, { run_id: id, outcome: 'lost' })
    expect((await customer.rows('contacts')).slice(6)).toEqual(contacts(8, { version: 'second' }).slice(6))
    expect(await call('GET', `/sync-job-run/${id}`)).toMatchObject({ status: 'completed', attempt: 2 })
  })

  it('ends a stopped run at its next page', async () => {
    const reached = Promise.withResolvers<void>()
    await using customer = await makeCustomer({
      records: oneList(contacts(30)),
      async beforePage(_, page) {
        if (page !== 3) return
        await call('POST', `/sync-job-run/${await id}/stop`, {})
        reached.resolve()
      },
    })
    const id = customer.run()
    // Files are reported page by page.
    await using daemon = customer.daemon({ store: `ndjson:${directory}` })
    await reached.promise
    await daemon.logged(ENDED, { outcome: 'stopped' })
    const { status, resource_stats } = await call('GET', `/sync-job-run/${await id}`)
    expect(status).toBe('stopped')
    expect(resource_stats[0].delivered).toBeLessThan(30)
  })

  it('lets a run wait while its store is unavailable, without counting an attempt', async () => {
    await using customer = await makeCustomer({ records: oneList(contacts(3)) })
    const id = await customer.run()
    await using daemon = customer.daemon({ store: 'postgres://nobody@127.0.0.1:1/nothing' })
    await daemon.logged(ENDED, { run_id: id, outcome: 'rate_limited' })
    const message = expect.stringContaining('connect ECONNREFUSED 127.0.0.1:1: check that it runs')
    expect(await call('GET', `/sync-job-run/${id}`)).toMatchObject({
      status: 'rate_limited',
      attempt: 0,
      error: { reason: 'STORE_UNAVAILABLE', message },
      waiting: {
        reason: 'destination_unavailable',
        message: expect.stringMatching(/^waits for its store: the store is/),
      },
    })
  })

  it('fails a run whose store rejects the daemon, with what the store said', async () => {
    await using customer = await makeCustomer({ records: oneList(contacts(3)) })
    const id = await customer.run()
    await using daemon = customer.daemon({ store: storeUrl.replace(/\/[^/?@]*\?/, '/missing?') })
    await daemon.logged(ENDED, { run_id: id, outcome: 'failed' })
    expect(await call('GET', `/sync-job-run/${id}`)).toMatchObject({
      status: 'failed',
      error: { reason: 'STORE_NOT_FOUND', message: expect.stringContaining('database "missing" does not exist') },
    })
  })

  it('ends when the service rejects its token', async () => {
    await using daemon = startDaemon({ url: app.url, token: `wrong-${randomUUID()}`, group: 'g', store: storeUrl })
    await expect(daemon.ended).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
  })
})
