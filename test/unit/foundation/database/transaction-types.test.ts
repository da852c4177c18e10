import { expect, expectTypeOf, it } from 'vitest'
import { type Database, type Db, type Pool, query, type Tx } from '../../../../src/foundation/database/index.ts'
import { getSyncableAccount } from '../../../../src/platform/accounts/index.ts'
import { changeAccountStatus } from '../../../../src/platform/accounts/status.ts'
import { takeRequest } from '../../../../src/platform/limits/index.ts'
import {
  acquireConcurrencySlot,
  blockWindow,
  releaseConcurrencySlot,
  returnToWindow,
  takeFromWindow,
} from '../../../../src/platform/limits/sql.ts'
import { appendEvents } from '../../../../src/platform/outbox/index.ts'
import { withCurrentSecrets } from '../../../../src/webhooks/outbound/index.ts'
import type { SendDeps } from '../../../../src/webhooks/outbound/send.ts'
import { testDatabase } from '../../../support/database.ts'

const { database } = await testDatabase()

it('a transaction and the pool are both connections, and neither is taken for the other', () => {
  expectTypeOf<Tx>().toExtend<Db>()
  expectTypeOf<Pool>().toExtend<Db>()
  expectTypeOf<Tx>().not.toExtend<Pool>()
  expectTypeOf<Pool>().not.toExtend<Tx>()
  expectTypeOf<Db>().not.toExtend<Tx>()
  expectTypeOf<Db>().not.toExtend<Pool>()
})

it('what must be committed together takes an open transaction alone', () => {
  expectTypeOf<Parameters<Parameters<Database['transaction']>[0]>[0]>().toEqualTypeOf<Tx>()
  expectTypeOf(appendEvents).parameter(0).toEqualTypeOf<Tx>()
  expectTypeOf(changeAccountStatus).parameter(0).toEqualTypeOf<Tx>()
  expectTypeOf(query).parameter(0).toEqualTypeOf<Db>()
})

it('what must commit before others go on takes no open transaction', () => {
  for (const take of [takeRequest, takeFromWindow, returnToWindow, blockWindow])
    expectTypeOf(take).parameter(0).toEqualTypeOf<Pool>()
  expectTypeOf(acquireConcurrencySlot).parameter(0).toEqualTypeOf<Pool>()
  expectTypeOf(releaseConcurrencySlot).parameter(0).toEqualTypeOf<Pool>()
})

it('what reads the object store, or secrets that others rotate, takes no open transaction', () => {
  expectTypeOf(getSyncableAccount).parameter(1).toEqualTypeOf<Pool>()
  expectTypeOf(withCurrentSecrets).parameter(1).toEqualTypeOf<Pool>()
  expectTypeOf<SendDeps['database']['pool']>().toEqualTypeOf<Pool>()
})

it('the types say what the values are', async () => {
  expect(database.pool.isTransaction).not.toBe(true)
  await database.transaction(async (tx) => expect(tx.isTransaction).toBe(true))
})
