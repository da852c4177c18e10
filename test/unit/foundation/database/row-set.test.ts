import { expect, expectTypeOf, it } from 'vitest'
import { query, rowSet } from '../../../../src/foundation/database/index.ts'
import { testDatabase } from '../../../support/database.ts'

const { database } = await testDatabase()
const PARCELS = rowSet('id uuid, sent_at timestamptz, weight double precision, label jsonb')
const ID = '01940f8a-0c00-7000-8000-0000000000a1'
const parcels = [
  { id: ID, sentAt: new Date('2026-01-01T00:00:00Z'), weight: 1.5, label: { colour: 'red', sizes: [1] } },
  { id: ID, sentAt: null, weight: null, label: null },
]

it('hands rows to a statement as they are, in their order, however many', async () => {
  const select = `select v.* from ${PARCELS.rows}`
  expect(await query(database.pool, select, PARCELS.of(parcels))).toEqual(parcels)
  expect(await query(database.pool, select, PARCELS.of([]))).toEqual([])
})

it('names the columns as tables do', async () => {
  expect(PARCELS.columns).toBe('id, sent_at, weight, label')
  const numbered = `select place from ${PARCELS.unnest} with ordinality as p (${PARCELS.columns}, place) where sent_at is null`
  expect(await query(database.pool, numbered, PARCELS.of(parcels))).toEqual([{ place: 2 }])
})

it('takes fields of the types that their columns have', () => {
  type Row = Parameters<typeof PARCELS.of>[0][number]
  expectTypeOf<Row['id']>().toEqualTypeOf<string | null>()
  expectTypeOf<Row['sentAt']>().toEqualTypeOf<Date | null>()
  expectTypeOf<{ id: string }>().not.toExtend<Row>()
})
