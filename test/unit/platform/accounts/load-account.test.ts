import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { createAccountReader } from '../../../../src/platform/accounts/index.ts'
import { accountsFixture } from './fixture.ts'

const { database, tx, own, other, connect, update } = await accountsFixture()
const one = await connect()
const two = await connect()

const read = (reader: ReturnType<typeof createAccountReader>, id: string, { environmentId } = own) =>
  reader.read({ environmentId, id })

describe('the reader of accounts', () => {
  it('finds an account with its encrypted secrets, and nothing for an id that is unknown or foreign', async () => {
    const reader = createAccountReader(database)
    const found = await read(reader, one.id.toUpperCase())
    expect(found?.account).toMatchObject({ id: one.id, status: 'active', isEnabled: true })
    expect(found?.secrets.map(({ name, ciphertext }) => [name, ciphertext.length > 50])).toEqual([['api_key', true]])
    expect(await read(reader, newId())).toBeUndefined()
    expect(await read(reader, one.id, other)).toBeUndefined()
  })

  it('answers many who ask at once with few statements, each with its own account', async () => {
    let statements = 0
    const reader = createAccountReader({
      get pool() {
        statements += 1
        return tx
      },
    })
    const ids = Array.from({ length: 60 }, (_, index) =>
      index % 3 === 0 ? newId() : index % 3 === 1 ? one.id : two.id,
    )
    const found = await Promise.all(ids.map((id) => read(reader, id)))
    expect(found.map((each) => each?.account.id)).toEqual(ids.map((id, index) => (index % 3 === 0 ? undefined : id)))
    expect(statements).toBeLessThan(5)
  })

  it('returns what was changed to every read after the change, however many reads there are', async () => {
    const reader = createAccountReader(database)
    const before = Array.from({ length: 10 }, () => read(reader, two.id))
    await update({ id: two.id, tenantId: 'changed' })
    expect((await read(reader, two.id))?.account.tenantId).toBe('changed')
    await Promise.all(before)
  })

  it('fails all who share a statement, and works again after', async () => {
    let isBroken = true
    const reader = createAccountReader({
      get pool() {
        if (isBroken) throw new Error('the database is away')
        return tx
      },
    })
    const outcomes = await Promise.allSettled([read(reader, one.id), read(reader, two.id)])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    isBroken = false
    expect((await read(reader, one.id))?.account.id).toBe(one.id)
  })
})
