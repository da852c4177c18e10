import { userInfo } from 'node:os'
import pg from 'pg'
import { beforeEach, describe, expect, inject, it } from 'vitest'
import { SUPERUSER } from '../../../../src/foundation/database/embedded-identity.ts'
import { Database, execute, query } from '../../../../src/foundation/database/index.ts'
import { bootstrap } from '../../../../src/platform/tenancy/index.ts'
import { clockedDatabase, testDatabase } from '../../../support/database.ts'
import { startHealthApp } from '../../../support/health-app.ts'
import { EXAMPLE_CONFIG, freshName } from '../../../support/seeded-tenant.ts'

const { url, target, database: admin } = await testDatabase()
const first = await bootstrap(admin)
const app = await startHealthApp({ kind: 'url', url })
const name = (await query<{ name: string }>(admin.pool, 'select current_database() as name'))[0]?.name

beforeEach(async () => {
  app.elapse(10_000)
  await app.watch.check()
  expect(await app.healthz()).toEqual({ status: 'SERVING' })
})

async function call(base: string, verb: 'GET' | 'POST') {
  const answer = await fetch(`${base}/integration`, {
    method: verb,
    headers: { authorization: `Bearer ${first?.teamToken}`, 'content-type': 'application/json' },
    ...(verb === 'GET' ? {} : { body: JSON.stringify({ name: freshName('integration'), config: EXAMPLE_CONFIG }) }),
  })
  const { error } = (await answer.json()) as { error?: { details: { reason?: string }[] } }
  return [answer.status, error?.details[0]?.reason]
}

/** Ends the connections of the database but those of `admin`: new ones take the settings of the moment. */
async function endConnections(): Promise<void> {
  await query(
    admin.pool,
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()`,
  )
}

describe('a database that takes no writes', () => {
  it('is 503 for a write and no problem for a read, until it takes writes again', async () => {
    await execute(admin.pool, `alter database ${name} set default_transaction_read_only = on`)
    await endConnections()
    // One by one the pool finds out that its connections have ended.
    while ((await call(app.url, 'POST'))[1] === 'DATABASE_UNAVAILABLE');
    expect(await call(app.url, 'POST')).toEqual([503, 'DATABASE_READ_ONLY'])
    expect(await call(app.url, 'GET')).toEqual([200, undefined])
    expect(await app.healthz()).toMatchObject({ status: 'NOT_SERVING', reason: 'DATABASE_READ_ONLY' })
    app.elapse(10_000)
    await app.watch.check()
    expect((await app.healthz()).reason).toBe('DATABASE_READ_ONLY')
    await execute(admin.pool, `alter database ${name} reset default_transaction_read_only`)
    await app.watch.check()
    expect(await app.healthz()).toEqual({ status: 'SERVING' })
    // No connection that was opened as a read-only one is used again.
    expect(await call(app.url, 'POST')).toEqual([200, undefined])
  })

  it('is found without a write', async () => {
    await execute(admin.pool, `alter database ${name} set default_transaction_read_only = on`)
    await endConnections()
    await app.watch.check()
    expect((await app.healthz()).reason).toBe('DATABASE_READ_ONLY')
    await execute(admin.pool, `alter database ${name} reset default_transaction_read_only`)
    await app.watch.check()
    await app.watch.check()
    expect(await app.healthz()).toEqual({ status: 'SERVING' })
  })
})

describe('a database without a free connection', () => {
  it('is 503 although the health check has one, until one is free', async () => {
    const role = freshName('limited').replaceAll('-', '_')
    await execute(admin.pool, `create role ${role} login connection limit 4`)
    await execute(admin.pool, `grant select, insert, update on all tables in schema public to ${role}`)
    if (inject('databases').isOwn) await admit(role)
    const limitedUrl = url.replace(/^postgres:\/\/[^@]*@/, `postgres://${role}@`)
    const limited = await startHealthApp({ kind: 'url', url: limitedUrl })
    const held = await takeConnections(limitedUrl)
    const answers = await Promise.all(Array.from({ length: 8 }, () => call(limited.url, 'GET')))
    expect(answers).toContainEqual([503, 'DATABASE_OVERLOADED'])
    expect((await limited.healthz()).reason).toBe('DATABASE_OVERLOADED')
    limited.elapse(10_000)
    await limited.watch.check()
    expect((await limited.healthz()).reason).toBe('DATABASE_OVERLOADED')
    for (const each of held) await each.end()
    // The server frees their places a moment later.
    while ((await limited.healthz()).status !== 'SERVING') {
      limited.elapse(10_000)
      await limited.watch.check()
    }
    expect(await call(limited.url, 'GET')).toEqual([200, undefined])
  })

  /** Lets the account of the tests connect as the role: the embedded server admits the role of the service alone. */
  async function admit(role: string): Promise<void> {
    // COPY empties the file before it runs its query, so the lines are read first.
    await execute(
      admin.pool,
      `do $$ declare file text := current_setting('ident_file'); lines text := pg_read_file(file) || '${SUPERUSER} "${userInfo().username}" ${role}'; begin
         execute format('copy (select regexp_split_to_table(%L, %L)) to %L', lines, '\\n', file);
         perform pg_reload_conf();
       end $$`,
    )
  }

  /** Takes all that are free. */
  async function takeConnections(connectionString: string): Promise<pg.Client[]> {
    const taken: pg.Client[] = []
    for (;;) {
      const client = new pg.Client({ connectionString })
      const isConnected = await client.connect().then(
        () => true,
        () => false,
      )
      if (!isConnected) return taken
      taken.push(client)
    }
  }
})

describe('a limit of the configuration', () => {
  it('fails the statement that it stops, and health until none has failed for a while', async () => {
    await using narrow = new Database({ target, poolMax: 1 })
    app.watch.attach(narrow)
    await execute(narrow.pool, `set temp_file_limit = '64kB'; set work_mem = '64kB'`)
    const spill = `select count(distinct repeat(md5(n::text), 32)) from generate_series(1, 4096) n`
    await expect(query(narrow.pool, spill)).rejects.toMatchObject({ code: '53400' })
    expect((await app.healthz()).reason).toBe('DATABASE_OVERLOADED')
    app.elapse(4_000)
    await app.watch.check()
    expect((await app.healthz()).status).toBe('NOT_SERVING')
    app.elapse(2_000)
    await app.watch.check()
    expect(await app.healthz()).toEqual({ status: 'SERVING' })
  })
})

describe('the clock of the process', () => {
  it.each([
    [-61, '61 s behind'],
    [61, '61 s ahead of'],
    [3_600, '3600 s ahead of'],
  ])('that differs by %d s from the database is not healthy, and is logged once', async (seconds, said) => {
    const before = app.log.length
    app.setClockOffset(seconds * 1_000)
    await app.watch.check()
    await app.watch.check()
    const { status, reason, message } = await app.healthz()
    expect([status, reason]).toEqual(['NOT_SERVING', 'CLOCK_WRONG'])
    expect(message).toContain(said)
    expect(message).toContain('reject')
    expect(app.log.slice(before)).toEqual([[{ reason: 'CLOCK_WRONG' }, message]])
    expect(await app.metric('patchbay_clock_offset_seconds')).toBeCloseTo(seconds, 0)
    app.elapse(11 * 60_000)
    await app.watch.check()
    expect(app.log.slice(before)).toHaveLength(2)
    app.setClockOffset(0)
    await app.watch.check()
    expect(await app.healthz()).toEqual({ status: 'SERVING' })
  })

  it('may differ by 59 s', async () => {
    app.setClockOffset(59_000)
    await app.watch.check()
    expect(await app.healthz()).toEqual({ status: 'SERVING' })
    app.setClockOffset(0)
  })

  it('is compared with that of the database, not of its machine', async () => {
    const clocked = await clockedDatabase()
    const other = await startHealthApp(clocked.target)
    await clocked.clock.set(new Date(Date.now() + 600_000))
    await other.watch.check()
    expect((await other.healthz()).message).toContain('behind the database')
  })
})
