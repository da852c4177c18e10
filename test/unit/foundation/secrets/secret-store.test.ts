import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import {
  createSecretStore,
  generateKeyRingText,
  parseKeyRing,
  type SecretRef,
} from '../../../../src/foundation/secrets/index.ts'
import { testDatabase } from '../../../support/database.ts'

const { database } = await testDatabase()
const tx = database.pool
const secrets = createSecretStore(parseKeyRing(generateKeyRingText('k1')))
const refOf = (overrides: Partial<SecretRef> = {}): SecretRef => ({
  ownerId: newId(),
  subjectType: 'webhook',
  subjectId: newId(),
  ...overrides,
})

describe('secrets', () => {
  it('come back as they were put, and only for their subject', async () => {
    const ref = refOf()
    await secrets.put(tx, ref, { token: 'abc', other: 'def' })
    await secrets.put(tx, ref, { token: 'new' })
    expect(await secrets.get(tx, ref)).toEqual({ token: 'new', other: 'def' })
    expect(await secrets.get(tx, refOf({ ownerId: ref.ownerId }))).toEqual({})
  })

  it('come back when their subject is addressed in capitals', async () => {
    const ref = refOf()
    await secrets.put(tx, { ...ref, subjectId: ref.subjectId.toUpperCase() }, { token: 'abc' })
    expect(await secrets.get(tx, ref)).toEqual({ token: 'abc' })
  })

  it('are gone when removed by name', async () => {
    const ref = refOf()
    await secrets.put(tx, ref, { a: '1', b: '2' })
    await secrets.remove(tx, ref, ['a'])
    expect(await secrets.get(tx, ref)).toEqual({ b: '2' })
  })

  it.each([
    ['another subject', 'subject_id = gen_random_uuid()'],
    ['another name', "name = 'renamed'"],
    ['another kind of subject', "subject_type = 'integration'"],
  ])('do not decrypt after their row was moved to %s', async (_, change) => {
    const ref = refOf()
    await secrets.put(tx, ref, { token: 'abc' })
    await execute(tx, `update secret set ${change} where subject_id = :subjectId`, { subjectId: ref.subjectId })
    const [moved] = await query<SecretRef>(
      tx,
      `select owner_id as "ownerId", subject_type as "subjectType", subject_id as "subjectId" from secret where owner_id = :ownerId`,
      { ownerId: ref.ownerId },
    )
    await expect(secrets.get(tx, moved!)).rejects.toMatchObject({ reason: 'SECRET_UNREADABLE' })
  })

  it('are gone with the data keys that could decrypt a copy, once the keys of their owner are destroyed', async () => {
    const [ref, other] = [refOf(), refOf()]
    for (const each of [ref, other]) await secrets.put(tx, each, { token: 'abc' })
    await secrets.destroyKeys(tx, ref.ownerId)
    expect(await secrets.get(tx, ref)).toEqual({})
    expect(await query(tx, 'select id from data_key where owner_id = :ownerId', { ownerId: ref.ownerId })).toEqual([])
    expect(await secrets.get(tx, other)).toEqual({ token: 'abc' })
  })

  it('need the key that wrapped their data key', async () => {
    const ref = refOf()
    await secrets.put(tx, ref, { token: 'abc' })
    const other = createSecretStore(parseKeyRing(generateKeyRingText('k1')))
    await expect(other.get(tx, ref)).rejects.toMatchObject({ reason: 'SECRET_UNREADABLE' })
  })

  it('of one owner share a data key even when two transactions make the first one at once', async () => {
    const ownerId = newId()
    const refs = [refOf({ ownerId }), refOf({ ownerId })]
    await Promise.all(
      refs.map((ref) => database.transaction((each) => secrets.put(each, ref, { token: ref.subjectId }))),
    )
    for (const ref of refs) expect(await secrets.get(tx, ref)).toEqual({ token: ref.subjectId })
    expect(await query(tx, 'select id from data_key where owner_id = :ownerId', { ownerId })).toHaveLength(1)
  })

  it('made in a transaction that rolls back leave no trace and do not spoil later ones', async () => {
    const ref = refOf()
    const failing = database.transaction(async (each) => {
      await secrets.put(each, ref, { token: 'lost' })
      throw new Error('rolled back')
    })
    await expect(failing).rejects.toThrow('rolled back')
    await secrets.put(tx, ref, { token: 'kept' })
    expect(await secrets.get(tx, ref)).toEqual({ token: 'kept' })
  })

  it('encrypted for another column decrypt only for their owner and associated data', async () => {
    const ownerId = newId()
    const encrypted = await secrets.encryptFor(tx, ownerId, 'answer|1', Buffer.from('bytes'))
    expect(Buffer.from(await secrets.decryptFor(tx, ownerId, 'answer|1', encrypted)).toString()).toBe('bytes')
    await expect(secrets.decryptFor(tx, ownerId, 'answer|2', encrypted)).rejects.toMatchObject({
      reason: 'SECRET_UNREADABLE',
    })
  })
})
