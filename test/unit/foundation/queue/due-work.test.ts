import { beforeEach, describe, expect, it } from 'vitest'
import { newId, systemClock } from '../../../../src/foundation/base/index.ts'
import { execute, queryOne } from '../../../../src/foundation/database/index.ts'
import {
  type DueSettlement,
  type DueTable,
  type Lease,
  runDue,
  settleDue,
  updateHeld,
} from '../../../../src/foundation/queue/index.ts'
import { claimDue } from '../../../../src/foundation/queue/sql/due.ts'
import { testDatabase } from '../../../support/database.ts'

interface Parcel {
  readonly id: string
  readonly attempts: number
  readonly requested: number
}

const { database } = await testDatabase()
const tx = database.pool
await execute(
  tx,
  `create table parcel (id uuid primary key, region text not null, due_at timestamptz(3), lease_id uuid,
     lease_ends_at timestamptz(3), attempts integer not null default 0, requested integer not null default 0, label text)`,
)

const OWN_END: DueTable<Parcel> = {
  table: 'parcel',
  columns: { id: 'id', attempts: 'attempts', requested: 'requested' },
  key: ['id'],
  due: 'due_at',
  leaseId: 'lease_id',
  leaseEnd: 'lease_ends_at',
}
const { leaseEnd: _leaseEnd, ...DUE_IS_END } = OWN_END
const { leaseId: _leaseId, ...ATTEMPTS_FENCE } = DUE_IS_END

const row = () =>
  queryOne<{ isDue: boolean; attempts: number; label: string | null }>(
    tx,
    'select due_at <= now() as "isDue", attempts, label from parcel',
  )
const ask = () => execute(tx, 'update parcel set requested = requested + 1')

beforeEach(async () => {
  await execute(tx, 'truncate parcel')
  await execute(tx, `insert into parcel (id, region, due_at) values (:id, 'eu', now() - interval '1 s')`, {
    id: newId(),
  })
})

const LEASE_IDS: readonly [string, DueTable<Parcel>][] = [
  ['the end of a lease in a column of its own', OWN_END],
  ['the due time as the end of a lease', DUE_IS_END],
]

const claimOf = (table: DueTable<Parcel>, leaseMs = 60_000) =>
  claimDue(tx, table, { leaseId: newId(), leaseMs, limit: 10 })

async function leaseOf(table: DueTable<Parcel>, leaseMs?: number): Promise<Lease<Parcel>> {
  const [taken] = await claimOf(table, leaseMs)
  if (taken === undefined) throw new Error('nothing was due')
  return taken
}

describe.each<[string, DueTable<Parcel>]>([...LEASE_IDS, ['the attempts as the fence', ATTEMPTS_FENCE]])(
  'a table with %s',
  (_, table) => {
    it('leases a row once, until the lease expires', async () => {
      expect(await leaseOf(table, -1)).toMatchObject({ attempts: 1 })
      expect(await leaseOf(table)).toMatchObject({ attempts: 2 })
      expect(await claimOf(table)).toEqual([])
    })

    it('lets a holder that lost its lease neither write nor settle nor delete', async () => {
      const lost = await leaseOf(table, -1)
      const held = await leaseOf(table)
      expect(await updateHeld(tx, table, lost, 'label = :label', { label: 'late' })).toBe(false)
      expect(await settleDue(tx, table, lost, { delayMs: 0 })).toBe(false)
      expect(await settleDue(tx, table, lost, { isDone: true })).toBe(false)
      expect(await updateHeld(tx, table, held, 'label = :label', { label: 'here' })).toBe(true)
      expect(await row()).toMatchObject({ label: 'here', attempts: 2 })
    })

    it.each<[string, DueSettlement, unknown]>([
      ['due later', { delayMs: 60_000 }, { isDue: false, attempts: 1, label: null }],
      ['due at once', { delayMs: 0 }, { isDue: true, attempts: 1, label: null }],
      ['never due', { delayMs: null }, { isDue: null, attempts: 1, label: null }],
      [
        'written',
        { delayMs: 0, set: 'label = :label', values: { label: 'x' } },
        { isDue: true, attempts: 1, label: 'x' },
      ],
      ['deleted', { isDone: true }, undefined],
    ])('settles a row as %s', async (_name, settlement, expected) => {
      expect(await settleDue(tx, table, await leaseOf(table), settlement)).toBe(true)
      expect(await row()).toEqual(expected)
    })
  },
)

describe.each<[string, DueTable<Parcel>]>(LEASE_IDS)('a table with %s', (_, table) => {
  it('counts as few attempts as the settlement says', async () => {
    expect(await settleDue(tx, table, await leaseOf(table), { delayMs: 0, attempts: 0 })).toBe(true)
    expect(await row()).toEqual({ isDue: true, attempts: 0, label: null })
  })

  it('makes a row due at once that was asked for while it was leased, and does not delete it', async () => {
    const first = await leaseOf(table)
    await ask()
    expect(await settleDue(tx, table, first, { isDone: true })).toBe(false)
    expect(await settleDue(tx, table, first, { delayMs: 60_000 })).toBe(true)
    expect(await row()).toMatchObject({ isDue: true, attempts: 0 })
  })
})

describe('a round', () => {
  const deps = { database, clock: systemClock }
  const round = (work: (lease: Lease<Parcel>) => Promise<DueSettlement & { record?(): Promise<void> }>) =>
    runDue(deps, { table: OWN_END, leaseMs: 60_000, work })

  it('says whether there was something to do, and records a result in the transaction that ends the lease', async () => {
    const recorded: string[] = []
    const work = async ({ id }: Parcel) => ({ delayMs: null, record: async () => void recorded.push(id) })
    expect(await round(work)).toBe(true)
    expect(await round(work)).toBe(false)
    expect(recorded).toHaveLength(1)
  })

  it('records nothing of a lease that was lost', async () => {
    const recorded: string[] = []
    await round(async ({ id }) => {
      await execute(tx, 'update parcel set lease_id = null')
      return { delayMs: null, record: async () => void recorded.push(id) }
    })
    expect(recorded).toEqual([])
    expect(await row()).toMatchObject({ isDue: true })
  })

  it('leaves the lease of work that throws to expire, and throws its error', async () => {
    const error = new Error('broken')
    await expect(round(() => Promise.reject(error))).rejects.toBe(error)
    expect(await round(async () => ({}))).toBe(false)
  })

  it('takes rows of its regions only', async () => {
    const work = async () => ({ delayMs: null })
    expect(await runDue({ ...deps, regions: ['apac'] }, { table: OWN_END, leaseMs: 60_000, work })).toBe(false)
    expect(await runDue({ ...deps, regions: ['eu'] }, { table: OWN_END, leaseMs: 60_000, work })).toBe(true)
  })
})
