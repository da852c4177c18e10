import { describe, expect, it } from 'vitest'
import { query, queryOne } from '../../../../src/foundation/database/index.ts'
import { clockedDatabase } from '../../../support/database.ts'

const { database, clock } = await clockedDatabase()

interface Times {
  readonly now: Date
  readonly clock: Date
}

describe('the clock of a test database', () => {
  it('is the real time until it is set', async () => {
    const before = Date.now()
    const times = await queryOne<Times>(database.pool, 'select now() as now, clock_timestamp() as clock')
    expect(times?.now.getTime()).toBeGreaterThanOrEqual(before - 1_000)
    expect(times?.clock.getTime()).toBeGreaterThanOrEqual(before - 1_000)
  })

  it('is what statements of every connection call now', async () => {
    await clock.set('2031-02-28T23:59:59.999Z')
    await clock.advance(1)
    const moment = new Date('2031-03-01T00:00:00Z')
    expect(clock.now()).toEqual(moment)
    const sql = 'select now() as now, clock_timestamp() as clock'
    const all = await Promise.all(Array.from({ length: 3 }, () => query<Times>(database.pool, sql)))
    expect(all.flat()).toEqual([1, 2, 3].map(() => ({ now: moment, clock: moment })))
  })

  it('moves within a transaction that is open', async () => {
    await clock.set('2031-01-01T00:00:00Z')
    const seen = await database.transaction(async (tx) => {
      await query(tx, 'select now()')
      await clock.advance(1_000)
      return await queryOne<{ now: Date }>(tx, 'select now()')
    })
    expect(seen).toEqual({ now: new Date('2031-01-01T00:00:01Z') })
  })
})
