import fc from 'fast-check'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { describeOnce } from '../../../../src/foundation/database/describe-once.ts'
import { caseCount } from '../../../support/case-count.ts'
import { testDatabase } from '../../../support/database.ts'

const { target } = await testDatabase()

/** A connection of the driver, and how often it has asked for columns. */
async function connect() {
  const client = new pg.Client(target.kind === 'url' ? target.url : target)
  await client.connect()
  const { connection } = client as unknown as { connection: { describe(message: object): void } }
  const counted = { client, asked: 0 }
  const describeColumns = connection.describe.bind(connection)
  connection.describe = (message) => {
    counted.asked++
    describeColumns(message)
  }
  return counted
}

const driver = await connect()
const reuse = await connect()
describeOnce(reuse.client)
afterAll(async () => {
  await driver.client.end()
  await reuse.client.end().catch(() => {})
})

let names = 0
const named = (text: string, values: string[] = []) => ({ name: `s${++names}`, text, values })

/** What was asked for by the calls of `work`. */
async function askedDuring(work: () => Promise<unknown>): Promise<number> {
  const before = reuse.asked
  await work()
  return reuse.asked - before
}

describe('a prepared statement', () => {
  it.each([
    [
      'with rows',
      'select $1::int as n, null::text as nothing, now() as at',
      [{ n: 7, nothing: null, at: expect.any(Date) }],
    ],
    ['without rows', 'select 1 as n where $1::int < 0', []],
    ['without columns', 'select where $1::int > 0', [{}]],
    ['that returns nothing', 'update team set name = name where $1::int < 0', []],
  ])('%s is described by its first call alone', async (_, text, rows) => {
    const statement = named(text, ['7'])
    const call = async () => expect(await reuse.client.query(statement)).toMatchObject({ rows, rowCount: rows.length })
    expect([await askedDuring(call), await askedDuring(call), await askedDuring(call)]).toEqual([1, 0, 0])
  })

  it('is described by its second call when the first failed before it ran', async () => {
    const statement = (value: string) => ({ name: 'fails_first', text: 'select $1::int as n', values: [value] })
    await expect(reuse.client.query(statement('no number'))).rejects.toMatchObject({ code: '22P02' })
    expect((await reuse.client.query(statement('1'))).rows).toEqual([{ n: 1 }])
    expect(await askedDuring(() => reuse.client.query(statement('2')))).toBe(0)
  })

  it('gives the rows that the driver gives', async () => {
    const values = fc.tuple(
      fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }).map(String)),
      // Of a text with a backslash PostgreSQL makes no bytea.
      fc.option(fc.string({ unit: 'grapheme' }).filter((text) => !/[\0\\]/.test(text))),
      fc.option(
        fc
          .date({ min: new Date(0), max: new Date('9999-01-01'), noInvalidDate: true })
          .map((date) => date.toISOString()),
      ),
      fc.option(fc.json()),
    )
    const text = `select $1::int as a, $2::text as "b b", $3::timestamptz as c, $4::json as d, array[$1::int, 2] as e, $1::int > 0 as f,
      $1::bigint as g, $2::text::bytea is null as h from generate_series(1, 2)`
    await fc.assert(
      fc.asyncProperty(values, async (parameters) => {
        const statement = { name: 'same', text, values: parameters }
        const [theirs, ours] = [await driver.client.query(statement), await reuse.client.query(statement)]
        expect([ours.rows, ours.rowCount]).toEqual([theirs.rows, theirs.rowCount])
        expect(ours.rows.map(Object.keys)).toEqual(theirs.rows.map(Object.keys))
      }),
      { numRuns: caseCount(30, 300) },
    )
  })

  it('fails alone when a value cannot be read, also on a later row', async () => {
    pg.types.setTypeParser(pg.types.builtins.MONEY, (text) => {
      if (text.includes('2')) throw new Error('not read')
      return text
    })
    const statement = named('select n::money as m from generate_series(1, $1::int) as n', ['3'])
    await expect(reuse.client.query(statement)).rejects.toThrow('not read')
    expect((await reuse.client.query({ ...statement, values: ['1'] })).rowCount).toBe(1)
  })

  it('under way or waiting fails with its connection', async () => {
    const lost = await connect()
    describeOnce(lost.client)
    lost.client.on('error', () => {})
    const calls = [1, 2].map(() => lost.client.query(named('select pg_sleep($1::int)', ['60'])))
    const ended = Promise.allSettled(calls)
    const { processID } = lost.client as unknown as { processID: number }
    await driver.client.query('select pg_terminate_backend($1)', [processID])
    expect((await ended).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  })
})
