import { describe, expect, it } from 'vitest'
import { detachFromRequest, Failure, runInRequest } from '../../../../src/foundation/base/index.ts'
import { Database, type Db, execute, query } from '../../../../src/foundation/database/index.ts'
import { RequestContext } from '../../../../src/server/api/request-context.ts'
import { testDatabase } from '../../../support/database.ts'

const { target, database: other } = await testDatabase()
const DEADLINE = new Failure('DEADLINE_EXCEEDED', 'the deadline passed')

const openRequest = () => new RequestContext({ headers: {}, socket: {} })

/** Team names, one per case. */
let names = 0
const freshName = () => `team-${++names}`
const insert = async (tx: Db, name: string) =>
  await execute(tx, 'insert into team (id, name) values (gen_random_uuid(), :name)', { name })
const isStored = async (name: string) =>
  (await query(other.pool, 'select 1 from team where name = :name', { name })).length > 0

/** Resolves once a statement of another connection waits for a lock. */
async function untilBlocked(): Promise<void> {
  await expect
    .poll(async () => await query(other.pool, "select 1 from pg_stat_activity where wait_event_type = 'Lock'"))
    .not.toEqual([])
}

describe('a request that is interrupted', () => {
  it('cancels the statement that waits for a lock, whose connection is then used again', async () => {
    await using database = new Database({ target, poolMax: 1 })
    const name = freshName()
    await insert(other.pool, name)
    const request = openRequest()
    await other.transaction(async (tx) => {
      await execute(tx, "update team set domain = 'held' where name = :name", { name })
      const changed = request.raceInterrupt(() =>
        execute(database.pool, "update team set domain = 'late' where name = :name", { name }),
      )
      await untilBlocked()
      request.interrupt(DEADLINE)
      await expect(changed).rejects.toMatchObject({ reason: 'DEADLINE_EXCEEDED' })
    })
    const found = await query(database.pool, 'select domain from team where name = :name', { name })
    expect(found).toEqual([{ domain: 'held' }])
  })

  it('rolls a transaction back that was about to commit', async () => {
    await using database = new Database({ target, poolMax: 1 })
    const name = freshName()
    const request = openRequest()
    const stored = request.raceInterrupt(() =>
      database.transaction(async (tx) => {
        await insert(tx, name)
        request.interrupt(DEADLINE)
      }),
    )
    await expect(stored).rejects.toBe(DEADLINE)
    // On the only connection, which would show the row of a transaction that is still open.
    expect(await query(database.pool, 'select 1 from team where name = :name', { name })).toEqual([])
  })

  it.each(['builder', 'statement'])('begins no %s any more', async (kind) => {
    const request = openRequest()
    const name = freshName()
    request.interrupt(DEADLINE)
    const write = runInRequest(request, async () => {
      if (kind === 'statement') return await insert(other.pool, name)
      return await other.pool('team').insert({ id: other.pool.raw('gen_random_uuid()'), name })
    })
    await expect(write).rejects.toMatchObject({ reason: 'DEADLINE_EXCEEDED' })
    expect(await isStored(name)).toBe(false)
  })

  it('finishes what outlives it', async () => {
    const request = openRequest()
    const name = freshName()
    request.interrupt(DEADLINE)
    await runInRequest(request, () => detachFromRequest(() => insert(other.pool, name)))
    expect(await isStored(name)).toBe(true)
  })
})

describe('a request that is interrupted while a statement stores something for good', () => {
  it('goes on to its answer', async () => {
    const request = openRequest()
    const name = freshName()
    const answered = request.raceInterrupt(async () => {
      const release = request.holdAnswer(() => {})
      request.interrupt(DEADLINE)
      await detachFromRequest(() => insert(other.pool, name))
      release(true)
      return await query(other.pool, 'select 1 from team where name = :name', { name })
    })
    expect(await answered).toHaveLength(1)
  })
})
