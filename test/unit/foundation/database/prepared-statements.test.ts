import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { execute, query, queryOne } from '../../../../src/foundation/database/index.ts'
import { arrayLiteral, StatementCache } from '../../../../src/foundation/database/prepared-statements.ts'
import { caseCount } from '../../../support/case-count.ts'
import { testDatabase } from '../../../support/database.ts'

const { database } = await testDatabase()
const tx = database.pool

/** The only row's only column, in an array of one. */
async function readValue(sql: string, parameters?: Parameters<typeof query>[2]): Promise<unknown> {
  return (await queryOne<{ value: unknown }>(tx, sql, parameters))?.value
}

describe('a placeholder', () => {
  it.each<[string, string, Record<string, string>, unknown]>([
    ['has a cast', `select :n::int + 1 as value`, { n: '1' }, 2],
    ['is one parameter where it is used twice', `select :a::text || :a as value`, { a: 'x' }, 'xx'],
    ['is none in a literal', `select 'it''s :a ?' || :a as value`, { a: '!' }, `it's :a ?!`],
    ['is none in a quoted name', `select ":a" as value from (select :a::text as ":a") as t`, { a: 'y' }, 'y'],
    ['is none in a comment', `select :a::text as value -- :b ?`, { a: 'z' }, 'z'],
    ['stands beside the operator ?', `select '{"k":1}'::jsonb ? :key as value`, { key: 'k' }, true],
  ])('%s', async (_, sql, parameters, value) => {
    expect(await readValue(sql, parameters)).toBe(value)
  })

  it('without a value is an error, and null is one', async () => {
    await expect(readValue('select :a::text as value', {})).rejects.toThrow('parameter a has no value')
    expect(await readValue('select :a::text as value', { a: null })).toBeNull()
  })
})

describe('a statement', () => {
  const prepared = `select statement from pg_prepared_statements where statement like :pattern`

  it('is prepared once by a connection that runs it twice', async () => {
    await database.transaction(async (connection) => {
      for (const a of ['1', '2']) await query(connection, 'select :a::int as prepared_once', { a })
      const found = await query<{ statement: string }>(connection, prepared, { pattern: '%prepared_once' })
      expect(found).toEqual([{ statement: 'select $1::int as prepared_once' }])
    })
  })

  it('without parameters is not prepared', async () => {
    await database.transaction(async (connection) => {
      await query(connection, 'select 1 as never_prepared')
      expect(await query(connection, prepared, { pattern: '%never_prepared' })).toEqual([])
    })
  })

  it('is not prepared beyond 500 texts of its pool, whatever other pools run', () => {
    const [full, other] = [new StatementCache(), new StatementCache()]
    const texts = Array.from({ length: 501 }, (_, at) => `select :a + ${at}`)
    expect(texts.map((text) => full.get(text).name).lastIndexOf(undefined)).toBe(500)
    expect([full.get('select :a + 0').name, other.get('select :a + 500').name]).toEqual(['pb0', 'pb0'])
  })

  it('fails at most once after the type of a column has changed', async () => {
    await execute(tx, 'create table changed (a int)')
    const read = () => query(tx, 'select a from changed where a::text <> :a', { a: '' })
    await read()
    await execute(tx, 'alter table changed alter a type text')
    await expect(read()).rejects.toThrow('cached plan must not change result type')
    expect(await read()).toEqual([])
  })

  it('reports an error without the values', async () => {
    await expect(readValue('select :a::int as value', { a: 'secret' })).rejects.toThrow('select $1::int as value')
  })

  it('reports an error within a transaction to the listeners of its database, which is usable afterwards', async () => {
    const errors: unknown[] = []
    const note = (error: unknown) => errors.push(error)
    database.onError(note)
    const failed = database.transaction((connection) => query(connection, 'select 1 / :zero::int', { zero: 0 }))
    await expect(failed).rejects.toThrow('division by zero')
    tx.off('query-error', note)
    expect(errors).toEqual([expect.objectContaining({ code: '22012' })])
    expect(await readValue('select :a::int as value', { a: 1 })).toBe(1)
  })

  it('is not sent after its transaction has ended, when the connection is another’s', async () => {
    const ended = await database.transaction(async (connection) => ({ connection }))
    await expect(query(ended.connection, 'select :a::int', { a: 1 })).rejects.toThrow('the transaction has ended')
  })
})

describe('an array', () => {
  it.each<[string, readonly unknown[], string]>([
    ['of nothing', [], '{}'],
    [
      'of ids and times',
      ['01a1fe21-b4dc-7dae-9d3f-44feef5d8ab7', new Date(0)],
      '{01a1fe21-b4dc-7dae-9d3f-44feef5d8ab7,1970-01-01T00:00:00.000Z}',
    ],
    [
      'of times that repeat and change',
      [new Date(1), new Date(1), new Date(0), new Date(1)],
      '{1970-01-01T00:00:00.001Z,1970-01-01T00:00:00.001Z,1970-01-01T00:00:00.000Z,1970-01-01T00:00:00.001Z}',
    ],
    ['of numbers and booleans', [1, -2.5, 1e21, true], '{1,-2.5,1e+21,true}'],
    ['with nulls and the text null', [null, 'null', 'NULL'], '{NULL,"null","NULL"}'],
    [
      'of texts with special characters',
      ['', 'a b', '{,}', 'say "hi"', 'c:\\x'],
      '{"","a b","{,}","say \\"hi\\"","c:\\\\x"}',
    ],
  ])('%s is written as PostgreSQL reads it', (_, values, literal) => {
    expect(arrayLiteral(values)).toBe(literal)
  })

  it('of arrays, bytes or objects is left to pg', () => {
    for (const value of [['a'], Buffer.from('a'), { a: 1 }, undefined]) expect(arrayLiteral([value])).toBeUndefined()
  })

  it('of any texts comes back from the database as it was sent', async () => {
    const text = fc.option(fc.string({ unit: 'binary' }).map((each) => each.replaceAll('\0', '')))
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 8 }), async (values) => {
        const found = await queryOne<{ texts: string[] }>(database.pool, 'select :values::text[] as texts', { values })
        expect(found?.texts).toEqual(values)
      }),
      { numRuns: caseCount(30, 200) },
    )
  })
})
