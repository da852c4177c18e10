import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { openStore } from '../../../../src/cli/daemon/open-store.ts'
import { viewName } from '../../../../src/cli/daemon/typed-view.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { testDatabase } from '../../../support/database.ts'

const { url } = await testDatabase()
const database = new pg.Pool({ connectionString: url, max: 4 })
const ACCOUNT = randomUUID()

afterAll(() => database.end())

const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    remote_id: { type: 'string' },
    name: { type: 'string' },
    stage: { type: 'string', enum: ['lead', 'customer'] },
    employees: { type: 'integer' },
    score: { type: 'number' },
    revenue: { type: 'string', format: 'decimal' },
    active: { type: 'boolean' },
    closes: { type: 'string', format: 'date' },
    owner: { type: 'object', properties: { id: { type: 'string' } } },
    emails: { type: 'array', items: { type: 'object' } },
    updated_at: { type: 'string', format: 'date-time' },
    custom_fields: { type: 'object' },
  },
}

/** Writes records of a unified resource as a daemon does; problems with its view are collected. */
async function write(resource: string, recordSchema: JsonObject, records: readonly JsonObject[]) {
  const problems: string[] = []
  const onViewProblem = (problem: string) => problems.push(problem)
  await using store = openStore({ address: url, schema: 'crm', writers: 2, onViewProblem })
  const runId = randomUUID()
  const holder = { runId, integratedAccountId: ACCOUNT, leaseId: randomUUID(), attempt: 1, leasedUntil: new Date() }
  const run = await store?.open(holder)
  const rows = records.map((record) => ({ key: String(record.id), record: record as Json }))
  await run?.write({ resource, sequence: 1, rows, recordSchema })
  return { problems, runId }
}

async function typesOf(view: string) {
  const { rows } = await database.query(
    `select column_name as name, data_type as type from information_schema.columns
     where table_schema = 'crm' and table_name = $1 order by ordinal_position`,
    [view],
  )
  return Object.fromEntries(rows.map(({ name, type }) => [name, type]))
}

const withField = (name: string, field: JsonObject): JsonObject => ({
  ...SCHEMA,
  properties: { ...(SCHEMA.properties as JsonObject), [name]: field },
})

describe('the view of a unified resource', () => {
  it('has a typed column per field, beside those of the table', async () => {
    const record = {
      ...{ id: '7', remote_id: '7', name: "O'Hara", stage: null, stage_raw: 'VIP', employees: 12, score: 1.5 },
      ...{
        revenue: '12.50',
        active: true,
        closes: '2026-03-01',
        owner: { id: '9' },
        emails: [{ address: 'a@b.example' }],
      },
      ...{ updated_at: '2026-03-01T10:00:00Z', custom_fields: { tier: 'gold' }, more: 1 },
    }
    const { runId, problems } = await write('crm/deals', SCHEMA, [record])
    expect(problems).toEqual([])
    expect(await typesOf('unified_crm_deals')).toEqual({
      integrated_account_id: 'uuid',
      id: 'text',
      remote_id: 'text',
      name: 'text',
      stage: 'text',
      stage_raw: 'text',
      employees: 'bigint',
      score: 'numeric',
      revenue: 'numeric',
      active: 'boolean',
      closes: 'date',
      owner: 'jsonb',
      emails: 'jsonb',
      updated_at: 'timestamp with time zone',
      custom_fields: 'jsonb',
      _warnings: 'jsonb',
      run_id: 'uuid',
      first_seen_at: 'timestamp with time zone',
      last_seen_at: 'timestamp with time zone',
      record: 'jsonb',
    })
    const { rows } = await database.query(
      `select name, stage, stage_raw, employees + 1 as more, revenue * 2 as double, active, closes - date '2026-02-01' as days,
         owner->>'id' as owner, emails->0->>'address' as email, updated_at, custom_fields->>'tier' as tier, run_id,
         record->>'more' as unmapped
       from crm.unified_crm_deals where revenue between 12 and 13`,
    )
    expect(rows).toEqual([
      {
        ...{
          name: "O'Hara",
          stage: null,
          stage_raw: 'VIP',
          more: 13,
          double: '25.00',
          active: true,
          days: 28,
          owner: '9',
        },
        ...{
          email: 'a@b.example',
          updated_at: new Date('2026-03-01T10:00:00Z'),
          tier: 'gold',
          run_id: runId,
          unmapped: '1',
        },
      },
    ])
  })

  it('shows null where a record of an older schema has another type', async () => {
    const odd = { employees: 1.5, revenue: '1e3', active: 'yes', closes: 'soon', updated_at: 5, owner: null, score: {} }
    await write('crm/odd', SCHEMA, [{ id: '1', ...odd }])
    const { rows } = await database.query(
      `select employees, revenue, active, closes, updated_at, owner, score from crm.unified_crm_odd`,
    )
    expect(rows).toEqual([
      { employees: null, revenue: null, active: null, closes: null, updated_at: null, owner: null, score: null },
    ])
  })

  it.each([
    ['0000-01-01', false],
    ['2026-13-01', false],
    ['2026-04-31', false],
    ['2026-02-29', false],
    ['1900-02-29', false],
    ['0000-02-29', false],
    ['2024-02-29', true],
    ['2000-02-29', true],
    ['0001-01-31', true],
  ])('shows the day %s as a date: %s', async (day, isShown) => {
    const resource = `crm/day${day.replaceAll('-', '')}`
    await write(resource, SCHEMA, [{ id: '1', closes: day, updated_at: `${day}T23:59:59.5Z` }])
    const { rows } = await database.query(
      `select closes is not null as closes, updated_at is not null as updated from crm.${viewName(resource)}`,
    )
    expect(rows).toEqual([{ closes: isShown, updated: isShown }])
  })

  it('gets new columns, and other types, when the schema changes', async () => {
    await write('crm/grown', SCHEMA, [{ id: '1' }])
    await database.query(`create role reader`)
    await database.query(`grant select on crm.unified_crm_grown to reader`)
    await write('crm/grown', withField('tier', { type: 'string' }), [{ id: '2', tier: 'gold' }])
    expect((await typesOf('unified_crm_grown')).tier).toBe('text')
    const granted = await database.query(
      `select has_table_privilege('reader', 'crm.unified_crm_grown', 'select') as yes`,
    )
    expect(granted.rows).toEqual([{ yes: true }])
    await write('crm/grown', withField('tier', { type: 'integer' }), [{ id: '3', tier: 4 }])
    expect((await typesOf('unified_crm_grown')).tier).toBe('bigint')
    const { rows } = await database.query(`select id, tier from crm.unified_crm_grown order by id`)
    expect(rows.map(({ id, tier }) => [id, tier])).toEqual([
      ['1', null],
      ['2', null],
      ['3', 4],
    ])
  })

  it('is made once by daemons that start at the same time', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        write('crm/raced', index % 2 === 0 ? SCHEMA : withField('tier', { type: 'string' }), [{ id: String(index) }]),
      ),
    )
    expect(outcomes.flatMap(({ problems }) => problems)).toEqual([])
    expect((await database.query(`select id from crm.unified_crm_raced`)).rowCount).toBe(6)
  })

  it('stays as it is while something depends on it, and when its name belongs to something else', async () => {
    await write('crm/used', SCHEMA, [{ id: '1' }])
    await database.query(`create view crm.report as select id, name from crm.unified_crm_used`)
    const used = await write('crm/used', withField('name', { type: 'integer' }), [{ id: '2' }])
    expect(used.problems).toEqual([expect.stringContaining('other objects depend on it')])
    await database.query(`create table crm.unified_crm_taken (id text)`)
    const taken = await write('crm/taken', SCHEMA, [{ id: '1' }])
    expect(taken.problems).toEqual([expect.stringContaining('is no view of a daemon')])
    expect((await database.query(`select id from crm.report order by id`)).rows).toEqual([{ id: '1' }, { id: '2' }])
  })

  it.each([
    ['crm/contacts', 'unified_crm_contacts'],
    ['hris/time_off', 'unified_hris_time_off'],
    ['my_crm/deals', /^unified_my_crm_deals_[0-9a-f]{8}$/],
    [`crm/${'x'.repeat(60)}`, /^unified_crm_x{36}_[0-9a-f]{8}$/],
  ])('of %s is named %s', (resource, name) => {
    expect(viewName(resource)).toEqual(typeof name === 'string' ? name : expect.stringMatching(name))
  })
})
