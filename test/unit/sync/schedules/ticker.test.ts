import { beforeEach, describe, expect, it } from 'vitest'
import { newId, systemClock } from '../../../../src/foundation/base/index.ts'
import { Database, execute, query } from '../../../../src/foundation/database/index.ts'
import type { Logger } from '../../../../src/foundation/telemetry/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { RunQueue } from '../../../../src/sync/runs/index.ts'
import { Ticker } from '../../../../src/sync/schedules/index.ts'
import { clockedDatabase } from '../../../support/database.ts'
import { createTenant } from '../../../support/tenant.ts'
import { clearTriggers, TriggerFixture } from './trigger-fixture.ts'

const { database, target, clock } = await clockedDatabase()
beforeEach(async () => {
  await clock.reset()
  await clearTriggers(database)
})

/** Resolves once per call of `ring`, in order. */
class Bell {
  #waiting: (() => void)[] = []
  #rings = 0
  readonly ring = (): void => {
    const next = this.#waiting.shift()
    if (next === undefined) this.#rings++
    else next()
  }
  async heard(): Promise<void> {
    if (this.#rings > 0) this.#rings--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}

function tickerOn(pool: Database, onFired: () => void, logger: Logger = silentLogger): Ticker {
  const queue = new RunQueue({ database: pool, random: Math.random })
  return new Ticker({
    database: pool,
    queue,
    clock: systemClock,
    random: Math.random,
    logger,
    onFired,
  })
}

/** A trigger every second, under the database's own clock. */
async function everySecond(): Promise<{ readonly at: TriggerFixture; readonly id: string }> {
  const at = new TriggerFixture(database, await createTenant(database), clock)
  return { at, id: (await at.create({ cronExpression: '* * * * * *' })).id }
}

describe('a ticker', () => {
  it('fires by the clock of the database until it is disposed', async () => {
    const { at, id } = await everySecond()
    const bell = new Bell()
    {
      await using ticker = tickerOn(database, bell.ring)
      ticker.start()
      await bell.heard()
      expect(ticker.stats).toMatchObject({ failedPasses: 0, suspended: 0 })
      expect(ticker.stats.fired).toBeGreaterThan(0)
    }
    const fired = await at.ticksOf(id)
    expect(fired.length).toBeGreaterThan(0)
    await clock.advance(3_600_000)
    expect(await at.ticksOf(id)).toEqual(fired)
  })

  it('says in the log which trigger it suspended and why', async () => {
    const { id } = await everySecond()
    await execute(
      database.pool,
      `update trigger_schedule set cron_expression = 'nonsense', next_fire_at = now() - interval '1 second' where trigger_id = :id`,
      { id },
    )
    const logged: unknown[] = []
    const logger = { ...silentLogger, error: (fields: object) => logged.push(fields) }
    await using ticker = tickerOn(database, () => {}, logger)
    await ticker.runOnce()
    expect(logged).toEqual([{ trigger_id: id, error: expect.stringMatching(/./) }])
  })

  it('continues after its connections are cut', async () => {
    await everySecond()
    const bell = new Bell()
    const name = `ticker-${newId()}`
    await using pool = new Database({ target, applicationName: name })
    await using ticker = tickerOn(pool, bell.ring)
    ticker.start()
    await bell.heard()
    await query(
      database.pool,
      'select pg_terminate_backend(pid) from pg_stat_activity where application_name = :name',
      { name },
    )
    await execute(database.pool, 'truncate run_queue, run_lease') // so that the next tick fires again
    await bell.heard()
    expect(ticker.stats.fired).toBeGreaterThan(1)
  })

  it('continues while no database answers, and shows how old its measurement is', async () => {
    await using pool = new Database({ target: { kind: 'url', url: 'postgres://nobody@127.0.0.1:1/nowhere' } })
    await using ticker = tickerOn(pool, () => {})
    await expect(ticker.runOnce()).rejects.toThrow()
    ticker.start()
    await expect.poll(() => ticker.stats.failedPasses).toBeGreaterThanOrEqual(3)
    expect(ticker.stats.oldestDueAgeSeconds).toBeGreaterThan(0)
  })
})
