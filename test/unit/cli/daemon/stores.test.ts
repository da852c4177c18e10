import { randomUUID } from 'node:crypto'
import { appendFileSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore } from '../../../../src/cli/daemon/open-store.ts'
import { type RunHolder, type Store, storageName } from '../../../../src/cli/daemon/store.ts'
import type { Json } from '../../../../src/foundation/json/index.ts'
import { recordKeyOf } from '../../../../src/sync/jobs/index.ts'
import { testDatabase } from '../../../support/database.ts'
import { startPooler } from './support/pooler.ts'

const { url } = await testDatabase()
const directory = mkdtempSync(join(tmpdir(), 'patchbay-store-'))
const database = new pg.Pool({ connectionString: url, max: 2 })
const ACCOUNT = randomUUID()

afterAll(async () => {
  await database.end()
  rmSync(directory, { recursive: true })
})

let leases = 0

/** The next holder of the run: later ones have later leases. */
function holderOf(runId: string, integratedAccountId = ACCOUNT): RunHolder {
  leases++
  return { runId, integratedAccountId, leaseId: randomUUID(), attempt: 1, leasedUntil: new Date(leases * 1_000) }
}

function pageOf(resource: string, sequence: number, records: readonly Json[]) {
  return { resource, sequence, rows: records.map((record) => ({ key: recordKeyOf(record, ['id']), record })) }
}

/** `[_id, record]` of everything a run has stored of a resource, by id. */
type ReadAll = (resource: string, runId: string) => Promise<readonly (readonly [string, Json])[]>

async function readTable(resource: string, runId: string) {
  const sql = `select _id as key, record from crm."${resource}" where run_id = $1`
  const { rows } = await database.query(sql, [runId])
  return byKey(rows.map(({ key, record }) => [key, record]))
}

async function readFiles(resource: string, runId: string) {
  const files = globSync(`${resource}/*/${runId}.ndjson`, { cwd: directory })
  const lines = files.flatMap((file) => readFileSync(join(directory, file), 'utf8').trimEnd().split('\n'))
  return byKey(lines.map((line) => JSON.parse(line)).map(({ _id, record }) => [_id, record]))
}

function byKey(rows: readonly (readonly [string, Json])[]) {
  return rows.toSorted(([one], [other]) => (one < other ? -1 : 1))
}

const STORES: readonly { readonly name: string; readonly address: string; readonly readAll: ReadAll }[] = [
  { name: 'PostgreSQL', address: url, readAll: readTable },
  { name: 'NDJSON', address: `ndjson:${directory}`, readAll: readFiles },
]

describe.each(STORES)('a store in $name', ({ address, readAll }) => {
  let store: Store

  beforeAll(() => {
    const opened = openStore({ address, schema: 'crm', writers: 4 })
    if (opened === undefined) throw new Error(`no store at ${address}`)
    store = opened
    return async () => await store[Symbol.asyncDispose]()
  })

  it('stores records by key', async () => {
    const run = randomUUID()
    await using opened = await store.open(holderOf(run))
    await opened.write(
      pageOf('contacts', 1, [
        { id: 1, name: 'Ada' },
        { id: 'b', tags: ['x', null, 1.5] },
      ]),
    )
    await opened.write(pageOf('contacts', 2, [{ id: 3, note: 'ä"\\\n😀' }]))
    expect(await readAll('contacts', run)).toEqual([
      ['1', { id: 1, name: 'Ada' }],
      ['3', { id: 3, note: 'ä"\\\n😀' }],
      ['b', { id: 'b', tags: ['x', null, 1.5] }],
    ])
  })

  it('separates resources whose names differ in their last character', async () => {
    const [run, long] = [randomUUID(), 'a'.repeat(49)]
    await using opened = await store.open(holderOf(run))
    await opened.write(pageOf(`${long}x`, 1, [{ id: 1 }]))
    await opened.write(pageOf(`${long}y`, 2, [{ id: 2 }]))
    expect(await readAll(`${long}x`, run)).toEqual([['1', { id: 1 }]])
    expect(await readAll(`${long}y`, run)).toEqual([['2', { id: 2 }]])
  })

  it('stores a repeated page once, with its latest records', async () => {
    const run = randomUUID()
    await using first = await store.open(holderOf(run))
    await first.write(pageOf('deals', 1, [{ id: 1 }, { id: 2, stage: 'old' }]))
    await first.write(pageOf('deals', 2, [{ id: 3, stage: 'old' }, { id: 4 }]))
    await using second = await store.open(holderOf(run))
    await second.write(pageOf('deals', 2, [{ id: 3, stage: 'new' }, { id: 4 }]))
    await second.write(pageOf('deals', 3, [{ id: 5 }]))
    expect(await readAll('deals', run)).toEqual([
      ['1', { id: 1 }],
      ['2', { id: 2, stage: 'old' }],
      ['3', { id: 3, stage: 'new' }],
      ['4', { id: 4 }],
      ['5', { id: 5 }],
    ])
  })

  it('rejects writes of the earlier of two holders', async () => {
    const run = randomUUID()
    await using earlier = await store.open(holderOf(run))
    await earlier.write(pageOf('tickets', 1, [{ id: 1 }]))
    await using later = await store.open(holderOf(run))
    await expect(earlier.write(pageOf('tickets', 2, [{ id: 2, by: 'earlier' }]))).rejects.toMatchObject({
      reason: 'LEASE_LOST',
    })
    await later.write(pageOf('tickets', 2, [{ id: 2, by: 'later' }]))
    await expect(earlier.write(pageOf('tickets', 3, [{ id: 3 }]))).rejects.toMatchObject({ reason: 'LEASE_LOST' })
    expect(await readAll('tickets', run)).toEqual([
      ['1', { id: 1 }],
      ['2', { id: 2, by: 'later' }],
    ])
  })

  it('does not let an earlier holder take over the run again', async () => {
    const run = randomUUID()
    const [earlier, later] = [holderOf(run), holderOf(run)]
    await using opened = await store.open(later)
    await expect(store.open(earlier)).rejects.toMatchObject({ reason: 'LEASE_LOST' })
    await opened.write(pageOf('tickets', 1, [{ id: 1 }]))
    expect(await readAll('tickets', run)).toHaveLength(1)
  })

  it('lets many runs create the same resource at once', async () => {
    const runs = Array.from({ length: 8 }, () => randomUUID())
    await Promise.all(
      runs.map(async (run) => {
        await using opened = await store.open(holderOf(run, randomUUID()))
        await opened.write(pageOf('invoices', 1, [{ id: 1 }]))
      }),
    )
    for (const run of runs) expect(await readAll('invoices', run)).toEqual([['1', { id: 1 }]])
  })

  it('separates resources whose names differ in characters that no table name has', async () => {
    const run = randomUUID()
    await using opened = await store.open(holderOf(run))
    const names = ['crm/contacts', 'crm_contacts', 'CRM_contacts', '2024', 'patchbay_run_holder', 'x'.repeat(128)]
    for (const [index, name] of names.entries()) await opened.write(pageOf(name, index + 1, [{ id: index }]))
    for (const [index, name] of names.entries())
      expect(await readAll(storageName(name), run), name).toEqual([[String(index), { id: index }]])
    expect(storageName('crm_contacts')).toBe('crm_contacts')
  })
})

describe('a store in PostgreSQL', () => {
  const open = (schema: string, address = url) => {
    const store = openStore({ address, schema, writers: 2 })
    if (store === undefined) throw new Error('no store')
    return store
  }

  it('stores when a record was first and last seen, and by which run', async () => {
    await using store = open('times')
    const [one, two] = [randomUUID(), randomUUID()]
    for (const run of [one, two]) {
      await using opened = await store.open(holderOf(run))
      await opened.write(pageOf('contacts', 1, [{ id: 7, run }]))
    }
    const { rows } = await database.query('select *, last_seen_at > first_seen_at as "isLater" from times.contacts')
    expect(rows).toMatchObject([
      { _id: '7', record: { id: 7, run: two }, run_id: two, integrated_account_id: ACCOUNT, isLater: true },
    ])
  })

  it('separates the records of two accounts', async () => {
    await using store = open('accounts')
    for (const account of [randomUUID(), randomUUID()]) {
      await using opened = await store.open(holderOf(randomUUID(), account))
      await opened.write(pageOf('contacts', 1, [{ id: 1, account }]))
    }
    const { rows } = await database.query('select 1 from accounts.contacts')
    expect(rows).toHaveLength(2)
  })

  it.each([
    { what: 'NUL', record: { id: 1, text: 'a\u0000b' }, stored: { id: 1, text: 'a\ufffdb' } },
    { what: 'half a character', record: { id: 1, text: '\ud83d!' }, stored: { id: 1, text: '\ufffd!' } },
    { what: 'NUL in a key', record: { id: 1, 'k\u0000': 1 }, stored: { id: 1, 'k\ufffd': 1 } },
    { what: 'what only looks like NUL', record: { id: 1, text: '\\u0000' }, stored: { id: 1, text: '\\u0000' } },
  ])('replaces what it cannot hold and nothing else: $what', async ({ record, stored }) => {
    await using store = open('texts')
    const run = randomUUID()
    await using opened = await store.open(holderOf(run))
    await opened.write(pageOf('contacts', 1, [record]))
    const { rows } = await database.query('select record from texts.contacts where run_id = $1', [run])
    expect(rows).toEqual([{ record: stored }])
  })

  it('works behind a connection pooler that gives each transaction another session', async () => {
    await using pooler = await startPooler(url)
    await using store = open('pooled', pooler.address)
    await store.check()
    const [run, recordSchema] = [randomUUID(), { properties: { name: { type: 'string' } } }]
    await using opened = await store.open(holderOf(run))
    await opened.write({ ...pageOf('crm/contacts', 1, [{ id: 1, name: 'Ada' }]), recordSchema })
    await opened.write({ ...pageOf('crm/contacts', 2, [{ id: 2 }]), recordSchema })
    const { rows } = await database.query('select name from pooled.unified_crm_contacts order by name')
    expect(rows).toEqual([{ name: 'Ada' }, { name: null }])
    expect(pooler.sessionUses).toEqual([])
  })

  it('creates a dropped table again', async () => {
    await using store = open('dropped')
    const run = randomUUID()
    await using opened = await store.open(holderOf(run))
    await opened.write(pageOf('contacts', 1, [{ id: 1 }]))
    await database.query('drop table dropped.contacts')
    await opened.write(pageOf('contacts', 2, [{ id: 2 }]))
    const { rows } = await database.query('select record from dropped.contacts')
    expect(rows).toEqual([{ record: { id: 2 } }])
    await database.query('drop schema dropped cascade')
    await using again = await store.open(holderOf(run))
    await again.write(pageOf('contacts', 3, [{ id: 3 }]))
  })
})

describe('a store in NDJSON', () => {
  it('truncates a page that was not written completely', async () => {
    await using store = openStore({ address: `ndjson:${directory}`, schema: '', writers: 1 })
    const run = randomUUID()
    await using first = await store?.open(holderOf(run))
    await first?.write(pageOf('torn', 1, [{ id: 1 }]))
    const [file = ''] = globSync(`torn/*/${run}.ndjson`, { cwd: directory })
    appendFileSync(join(directory, file), '{"_id":"2","record":{"id":2}}\n{"_id":"3","rec')
    const [journal = ''] = globSync(`.patchbay/${run}.*`, { cwd: directory })
    appendFileSync(join(directory, journal), '{"path":"torn/')
    await using second = await store?.open(holderOf(run))
    await second?.write(pageOf('torn', 2, [{ id: 4 }]))
    expect(await readFiles('torn', run)).toEqual([
      ['1', { id: 1 }],
      ['4', { id: 4 }],
    ])
  })

  it('leaves nothing of a longer page when its repetition is shorter', async () => {
    await using store = openStore({ address: `ndjson:${directory}`, schema: '', writers: 1 })
    const run = randomUUID()
    await using first = await store?.open(holderOf(run))
    await first?.write(pageOf('shorter', 1, [{ id: 1 }, { id: 2 }, { id: 3 }]))
    await using second = await store?.open(holderOf(run))
    await second?.write(pageOf('shorter', 1, [{ id: 1 }]))
    expect(await readFiles('shorter', run)).toEqual([['1', { id: 1 }]])
  })
})
