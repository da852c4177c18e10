import { expect, it } from 'vitest'
import type { Db } from '../../src/foundation/database/index.ts'
import { execute, query } from '../../src/foundation/database/index.ts'
import { testDatabase } from '../support/database.ts'
import { fastClock } from '../support/fast-clock.ts'
import { interleavings, type Operation } from '../support/interleavings.ts'

const { target, database } = await testDatabase()
await execute(database.pool, 'create table race_counter (value int not null)')
await execute(database.pool, 'create table race_other (value int not null)')
const { expectAlways } = interleavings(target, fastClock())

/** Adds one to what it reads, between statements on another table. */
function increment(lock: '' | 'for update'): Operation {
  const add = async (tx: Db) => {
    await query(tx, 'select value from race_other')
    const [row] = await query<{ readonly value: number }>(tx, `select value from race_counter ${lock}`)
    await query(tx, 'select value from race_other')
    await execute(tx, 'update race_counter set value = :next', { next: (row?.value ?? 0) + 1 })
  }
  return (lane) => lane.database.transaction(add)
}

const race = (lock: '' | 'for update') => ({
  async arrange() {
    await execute(database.pool, 'truncate race_counter')
    await execute(database.pool, 'insert into race_counter values (0)')
  },
  operations: () => [increment(lock), increment(lock)] as const,
  async check() {
    expect(await query(database.pool, 'select value from race_counter')).toEqual([{ value: 2 }])
  },
})

it('the orders of a race that are tried find a lost update', async () => {
  await expect(expectAlways(race(''))).rejects.toThrow(/^[1-9]\d* of \d+ orders of the steps break the promise/)
})

it('and none where a lock prevents it', async () => {
  await expectAlways(race('for update'))
})
