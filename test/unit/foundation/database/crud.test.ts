import { describe, expect, it } from 'vitest'
import {
  execute,
  newestFirst,
  nextVersion,
  query,
  queryForValues,
  whereVersion,
} from '../../../../src/foundation/database/index.ts'
import { testDatabase } from '../../../support/database.ts'

const { database } = await testDatabase()
const tx = database.pool
await execute(
  tx,
  `create table note (id int, text text, version int default 0, updated_at timestamptz default 'epoch')`,
)
await tx('note').insert([1, 2, 3].map((id) => ({ id })))

describe('a column', () => {
  const sql = 'select id, updated_at, id as some_other_id from note where id = :id'
  const named = { id: 1, updatedAt: new Date(0), someOtherId: 1 }

  it.each([
    ['a prepared statement', () => query(tx, sql, { id: 1 })],
    ['a statement planned for its values', () => queryForValues(tx, sql, { id: 1 })],
    ['the query builder', () => tx('note').where({ id: 1 }).select('id', 'updated_at', 'id as some_other_id')],
  ])('has the name of a field in a result of %s', async (_, read) => {
    expect([await read(), await read()]).toEqual([[named], [named]])
  })
})

describe('a list', () => {
  it.each<[{ before?: string; limit: number }, number[]]>([
    [{ limit: 2 }, [3, 2]],
    [{ limit: 2, before: '2' }, [1]],
    [{ limit: 2, before: '1' }, []],
  ])('%j is a keyset page, newest first', async (page, ids) => {
    expect(await tx('note').modify(newestFirst, page).pluck('id')).toEqual(ids)
  })
})

describe('an update of a versioned row', () => {
  const update = (version: number | undefined, text: string | undefined) =>
    tx('note')
      .where({ id: 1 })
      .modify(whereVersion, version)
      .update({ text, ...nextVersion(tx) })
      .returning(['text', 'version'])

  it('counts versions up, for the version that was read or for any', async () => {
    expect(await update(0, 'a')).toEqual([{ text: 'a', version: 1 }])
    expect(await update(0, 'b')).toEqual([])
    expect(await update(undefined, undefined)).toEqual([{ text: 'a', version: 2 }])
    expect(await tx('note').where({ id: 1 }).where('updated_at', '>', 'epoch').pluck('id')).toEqual([1])
  })
})
