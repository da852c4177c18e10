import { describe, expect, it } from 'vitest'
import { Failure, newId } from '../../../../../src/foundation/base/index.ts'
import { Database, type Db, execute, query } from '../../../../../src/foundation/database/index.ts'
import {
  cancelTask,
  createTaskRunner,
  getTask,
  startTask,
  type TaskKind,
  type TaskStep,
  taskCleaner,
} from '../../../../../src/foundation/queue/index.ts'
import { silentLogger } from '../../../../../src/foundation/telemetry/logger.ts'
import { clockedDatabase } from '../../../../support/database.ts'
import { seedEnvironment } from '../../../../support/seed-rows.ts'

const { database, target, clock } = await clockedDatabase()
// Column defaults keep the real time: an hour ahead, what they say is due.
await clock.advance(3_600_000)
await execute(database.pool, 'create table effect (task_id uuid not null, item integer not null)')

/** Writes `params.items` items, two per step; `before` runs in a step after its writes. */
function writer(kind: string, before?: (tx: Db, from: number) => Promise<void>): TaskKind {
  return {
    kind,
    async step(tx, { id, params, cursor }): Promise<TaskStep> {
      const [from, items] = [Number(cursor ?? 0), Number(params.items)]
      const to = Math.min(from + 2, items)
      await execute(tx, 'insert into effect select :id, generate_series(:from::integer, :to::integer - 1)', {
        id,
        from,
        to,
      })
      await before?.(tx, from)
      const counts = { written: to - from }
      return { done: to - from, total: items, cursor: to === items ? null : to, counts }
    },
  }
}

function runnerOf(kinds: readonly TaskKind[], on = database) {
  return createTaskRunner({ database: on, random: () => 0.5, logger: silentLogger }, kinds)
}

async function runToEnd(runner: ReturnType<typeof runnerOf>): Promise<number> {
  for (let steps = 0; ; steps++) if (!(await runner.runOnce())) return steps
}

async function start(kind: string, items = 5) {
  const environmentId = await seedEnvironment(database)
  const { id } = await database.transaction((tx) => startTask(tx, { environmentId, kind, params: { items } }))
  return { id, read: () => getTask(database.pool, environmentId, id), environmentId }
}

async function itemsOf(id: string): Promise<readonly number[]> {
  const sql = 'select item from effect where task_id = :id order by item'
  return (await query<{ readonly item: number }>(database.pool, sql, { id })).map(({ item }) => item)
}

describe('a task', () => {
  it('is done step by step, and shows its progress and what it did', async () => {
    const { id, read } = await start('a')
    const runner = runnerOf([writer('a')])
    expect(await read()).toMatchObject({ state: 'queued', done: 0, total: null, result: {}, startedAt: null })
    await runner.runOnce()
    expect(await read()).toMatchObject({
      state: 'running',
      done: 2,
      total: 5,
      result: { written: 2 },
      finishedAt: null,
    })
    expect(await runToEnd(runner)).toBe(2)
    expect(await read()).toMatchObject({ state: 'completed', done: 5, total: 5, cursor: null, result: { written: 5 } })
    expect(await itemsOf(id)).toEqual([0, 1, 2, 3, 4])
  })

  it('has each step done once, however many processes run tasks', async () => {
    const tasks = [await start('b', 9), await start('b', 9), await start('b', 9)]
    const runners = Array.from({ length: 4 }, () => runnerOf([writer('b')]))
    while ((await Promise.all(runners.map((runner) => runner.runOnce()))).some((isBusy) => isBusy));
    for (const { id } of tasks) expect(await itemsOf(id)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
  })

  it('takes turns with the others', async () => {
    const [first, second] = [await start('c', 6), await start('c', 2)]
    const runner = runnerOf([writer('c')])
    await runner.runOnce()
    await runner.runOnce()
    expect([(await first.read()).state, (await second.read()).state]).toEqual(['running', 'completed'])
  })

  it('continues from its cursor when the process that ran it has died in a step', async () => {
    const { id, read } = await start('d')
    const dying = new Database({ target })
    const killed = writer('d', async (tx, from) => {
      if (from === 0) return
      const [connection] = await query<{ readonly pid: number }>(tx, 'select pg_backend_pid() as pid')
      await query(database.pool, 'select pg_terminate_backend(:pid)', { pid: connection?.pid ?? 0 })
      await query(tx, 'select 1')
    })
    const runner = runnerOf([killed], dying)
    expect(await runner.runOnce()).toBe(true)
    await expect(runner.runOnce()).rejects.toThrow()
    await dying[Symbol.asyncDispose]()
    expect(await itemsOf(id)).toEqual([0, 1])

    await runToEnd(runnerOf([writer('d')]))
    expect(await itemsOf(id)).toEqual([0, 1, 2, 3, 4])
    expect(await read()).toMatchObject({ state: 'completed', done: 5, failures: 0 })
  })

  it('of a kind that a process does not know waits for one that does', async () => {
    const { read } = await start('of-the-next-version')
    await runToEnd(runnerOf([writer('e')]))
    expect(await read()).toMatchObject({ state: 'queued' })
  })

  it('is rejected while 20 of the environment have not ended', async () => {
    const environmentId = await seedEnvironment(database)
    const ask = () => database.transaction((tx) => startTask(tx, { environmentId, kind: 'f', params: {} }))
    const [first] = await Promise.all(Array.from({ length: 20 }, ask))
    await expect(ask()).rejects.toMatchObject({ reason: 'RATE_LIMITED' })
    await cancelTask(database.pool, environmentId, first?.id ?? '')
    await ask()
  })

  it('is deleted 30 days after its end', async () => {
    const ended = await start('g', 1)
    await runToEnd(runnerOf([writer('g')]))
    const waiting = await start('g', 1)
    await clock.advance(30 * 86_400_000 + 1)
    await taskCleaner({ database }).runOnce()
    await expect(ended.read()).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    expect(await waiting.read()).toMatchObject({ state: 'queued' })
  })
})

describe('a failed step', () => {
  it('is undone, and done again after a backoff', async () => {
    const { id, read } = await start('h')
    let fails = 2
    const flaky = writer('h', async (_, from) => {
      if (from === 2 && fails-- > 0) throw new Error('a bug')
    })
    const runner = runnerOf([flaky])
    expect(await runToEnd(runner)).toBe(2)
    const error = 'an internal error, which is in the log'
    expect(await read()).toMatchObject({ state: 'running', done: 2, error, failures: 1 })
    expect(await itemsOf(id)).toEqual([0, 1])
    await clock.advance(60_000)
    await runToEnd(runner)
    await clock.advance(60_000)
    await runToEnd(runner)
    expect(await itemsOf(id)).toEqual([0, 1, 2, 3, 4])
    expect(await read()).toMatchObject({ state: 'completed', error: null, failures: 0 })
  })

  it('fails the task after eight in a row', async () => {
    const { id, read } = await start('i')
    const runner = runnerOf([writer('i', () => Promise.reject(new Error('a bug')))])
    for (let round = 0; round < 8; round++) {
      expect(await runToEnd(runner)).toBe(1)
      await clock.advance(60_000)
    }
    expect(await runToEnd(runner)).toBe(0)
    expect(await read()).toMatchObject({ state: 'failed', failures: 8, finishedAt: expect.any(Date) })
    expect(await itemsOf(id)).toEqual([])
  })

  it('fails the task at once when the error is an expected one', async () => {
    const { read } = await start('j')
    const gone = new Failure('RESOURCE_NOT_FOUND', 'the webhook was deleted')
    await runToEnd(runnerOf([writer('j', () => Promise.reject(gone))]))
    expect(await read()).toMatchObject({ state: 'failed', error: 'the webhook was deleted', failures: 1 })
  })
})

describe('cancelling a task', () => {
  it('waits for the step under way, after which nothing more happens', async () => {
    const { id, read, environmentId } = await start('k')
    let cancelled: Promise<unknown> | undefined
    const kind = writer('k', async () => {
      cancelled ??= cancelTask(database.pool, environmentId, id)
      await lockWait()
    })
    const runner = runnerOf([kind])
    await runner.runOnce()
    expect(await cancelled).toMatchObject({ state: 'cancelled', done: 2 })
    expect(await runToEnd(runner)).toBe(0)
    expect(await itemsOf(id)).toEqual([0, 1])
    expect(await read()).toMatchObject({ state: 'cancelled', finishedAt: expect.any(Date) })
  })

  it('changes nothing once it has ended, and finds no other', async () => {
    const { id, environmentId, read } = await start('l', 1)
    await runToEnd(runnerOf([writer('l')]))
    expect(await cancelTask(database.pool, environmentId, id)).toEqual(await read())
    await expect(cancelTask(database.pool, environmentId, newId())).rejects.toMatchObject({
      reason: 'RESOURCE_NOT_FOUND',
    })
    const other = await seedEnvironment(database)
    await expect(cancelTask(database.pool, other, id)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})

/** Resolves when a connection waits for the lock of another. */
async function lockWait(): Promise<void> {
  const sql = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
  while ((await query(database.pool, sql)).length === 0);
}
