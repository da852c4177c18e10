import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute, query, queryOne } from '../../../../src/foundation/database/index.ts'
import {
  continueRotation,
  createSecretStore,
  dataKeyIdOf,
  generateKeyRingText,
  KeyRingWatch,
  parseKeyRing,
  readKeyUsages,
  requestDataKeyRotation,
  retireKey,
  rewrapDataKeys,
  rotationProgress,
} from '../../../../src/foundation/secrets/index.ts'
import { SEALED_REMOVALS } from '../../../../src/platform/accounts/index.ts'
import { SEALED_LOG_CONTENT } from '../../../../src/platform/call-log/index.ts'
import { SEALED_SESSION_COLUMNS } from '../../../../src/platform/links/index.ts'
import { createContextValueStore } from '../../../../src/platform/objects/index.ts'
import { bootstrap, SEALED_ANSWERS } from '../../../../src/platform/tenancy/index.ts'
import { sealedValuesOf } from '../../../../src/server/sealed-values.ts'
import { testDatabase } from '../../../support/database.ts'
import { MemoryObjects } from '../../../support/memory-objects.ts'

const { database } = await testDatabase()
const { pool } = database
const [K1, K2] = ['k1', 'k2'].map(generateKeyRingText)
const objects = new MemoryObjects()

/** A process with these keys, in this order. */
function processWith(...keys: (string | undefined)[]) {
  const ring = parseKeyRing(keys.join(','))
  const secrets = createSecretStore(ring)
  const sealedValues = sealedValuesOf(secrets, objects)
  return { ring, secrets, sealedValues, rotation: { database, secrets, sealedValues } }
}

const secretOf = (ownerId: string) => ({ ownerId, subjectType: 'webhook' as const, subjectId: newId() })
const checksOf = (sealedValues: ReturnType<typeof processWith>['sealedValues']) => ({
  sealedValues,
  countPositions: async () => 0,
})

async function finishRotation(rotation: Parameters<typeof continueRotation>[0]) {
  while (await continueRotation(rotation));
}

describe('rewrapping', () => {
  it('leaves every value readable for processes with either key first, and nothing under the old key', async () => {
    const [before, after] = [processWith(K1, K2), processWith(K2, K1)]
    const refs = [newId(), newId(), newId()].map(secretOf)
    for (const ref of refs) await before.secrets.put(pool, ref, { token: ref.subjectId })
    expect((await rewrapDataKeys(database, after.ring, () => undefined)).missingKeys.size).toBe(0)
    for (const { secrets } of [processWith(K1, K2), processWith(K2, K1), processWith(K2)])
      for (const ref of refs) expect(await secrets.get(pool, ref)).toEqual({ token: ref.subjectId })
    const { keys } = await readKeyUsages(pool, after.ring, after.sealedValues)
    expect(keys.find(({ id }) => id === 'k1')).toMatchObject({ current: 0, replaced: 0, rows: 0 })
    expect(keys.find(({ id }) => id === 'k2')?.rows).toBeGreaterThanOrEqual(refs.length)
    expect((await rewrapDataKeys(database, after.ring, () => undefined)).rewrapped).toBe(0)
  })

  it('leaves what is under a key that is not there, and names the key', async () => {
    const ref = secretOf(newId())
    await processWith(generateKeyRingText('lost')).secrets.put(pool, ref, { token: 'x' })
    const { missingKeys } = await rewrapDataKeys(database, processWith(K2).ring, () => undefined)
    expect([...missingKeys]).toEqual(['lost'])
    await processWith(K2).secrets.destroyKeys(pool, ref.ownerId)
  })
})

describe('retiring a key', () => {
  it('is refused while a data key is under it, with what is under that', async () => {
    const [old, next] = [processWith(K1, K2), processWith(K2, K1)]
    const ref = secretOf(newId())
    await old.secrets.put(pool, ref, { a: '1', b: '2' })
    expect(await retireKey(database, next.ring, 'k1', checksOf(next.sealedValues))).toEqual({
      kind: 'in_use',
      dataKeys: 1,
      rows: 2,
      objects: 0,
    })
    await rewrapDataKeys(database, next.ring, () => undefined)
    expect(await retireKey(database, next.ring, 'k1', checksOf(next.sealedValues))).toBeUndefined()
    expect(await processWith(K2).secrets.get(pool, ref)).toEqual({ a: '1', b: '2' })
  })

  it('waits for a transaction that is storing a data key under it, and is then refused', async () => {
    const [old, next] = [processWith(K1, K2), processWith(K2, K1)]
    await old.secrets.put(pool, secretOf(newId()), { registers: 'k1' })
    await rewrapDataKeys(database, next.ring, () => undefined)
    let retiring: ReturnType<typeof retireKey> | undefined
    const ref = secretOf(newId())
    await database.transaction(async (tx) => {
      await old.secrets.put(tx, ref, { token: 'late' })
      retiring = retireKey(database, next.ring, 'k1', checksOf(next.sealedValues))
      await waitsForLock()
    })
    expect(await retiring).toMatchObject({ kind: 'in_use', dataKeys: 1, rows: 1 })
    await rewrapDataKeys(database, next.ring, () => undefined)
  })

  it('is refused for the key that writes here, and while a list position of a daemon is sealed under it', async () => {
    const { ring, sealedValues } = processWith(K2, K1)
    expect(await retireKey(database, ring, 'k2', checksOf(sealedValues))).toEqual({ kind: 'first' })
    const checks = { sealedValues, countPositions: async () => 3 }
    expect(await retireKey(database, ring, 'k1', checks)).toEqual({ kind: 'positions', runs: 3 })
  })

  it('is refused while a process lacks the key that is to write, and while one writes with the old key', async () => {
    const { ring, sealedValues } = processWith(K2, K1)
    await using old = watchOf(parseKeyRing(K1 ?? ''), 'old')
    await old.start()
    expect(await retireKey(database, ring, 'k1', checksOf(sealedValues))).toMatchObject({
      kind: 'process',
      isWriter: true,
      process: { name: 'old' },
    })
  })
})

function watchOf(ring: ReturnType<typeof parseKeyRing>, name: string, readText?: () => Promise<string>) {
  const logger = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const sleepForever = (_ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }))
  return new KeyRingWatch({
    database,
    ring,
    readText,
    name,
    clock: { sleep: sleepForever },
    random: () => 0,
    logger: logger as never,
  })
}

describe('the key that writes', () => {
  it('is the first one that every live process has', async () => {
    const ring = parseKeyRing([K2, K1].join(','))
    await using watch = watchOf(ring, 'next')
    await watch.start()
    expect(ring.writerId).toBe('k2')
    {
      await using old = watchOf(parseKeyRing(K1 ?? ''), 'old')
      await old.start()
      await watch.runOnce()
      expect(ring.writerId).toBe('k1')
    }
    await watch.runOnce()
    expect(ring.writerId).toBe('k2')
  })

  it('of a data key is decided in its transaction: a process that has just started is able to read it', async () => {
    const next = processWith(K2, K1)
    await using old = watchOf(parseKeyRing(K1 ?? ''), 'old')
    await old.start()
    const ref = secretOf(newId())
    await next.secrets.put(pool, ref, { token: 'x' })
    expect(await processWith(K1).secrets.get(pool, ref)).toEqual({ token: 'x' })
    await rewrapDataKeys(database, processWith(K2, K1).ring, () => undefined)
  })

  it('is another one than a key of the same id with other bytes', async () => {
    const ring = parseKeyRing([generateKeyRingText('k2'), K1].join(','))
    await using other = watchOf(parseKeyRing([K2, K1].join(',')), 'other')
    await other.start()
    await using watch = watchOf(ring, 'wrong')
    await watch.start()
    expect(ring.writerId).toBe('k1')
  })

  it('stops a start whose keys lack one that a transaction under way has just used', async () => {
    const next = processWith(generateKeyRingText('k4'), K2, K1)
    const owners = [newId(), newId()].map(secretOf)
    await next.secrets.put(pool, owners[0]!, { registers: 'k4' })
    await next.secrets.destroyKeys(pool, owners[0]!.ownerId)
    let starting: Promise<string | undefined> | undefined
    await using late = watchOf(parseKeyRing([K1, K2].join(',')), 'late')
    await database.transaction(async (tx) => {
      await next.secrets.put(tx, owners[1]!, { token: 'x' })
      starting = late.start()
      await waitsForLock()
    })
    expect(await starting).toBe('k4')
    await next.secrets.destroyKeys(pool, owners[1]!.ownerId)
  })
})

describe('a key file', () => {
  it('that changes is taken over; a key that is needed and gone from it stays in use', async () => {
    let text = `${K2}\n${K1}`
    const ring = parseKeyRing(text)
    await using watch = watchOf(ring, 'file', async () => text)
    expect(await watch.start()).toBeUndefined()
    const k3 = generateKeyRingText('k3')
    text = `${k3},${K1}`
    await watch.runOnce()
    expect(ring.ids).toEqual(['k3', 'k1', 'k2'])
    text = `${k3},${K2}`
    await watch.runOnce()
    expect(ring.ids).toEqual(['k3', 'k2'])
    text = 'nonsense'
    await watch.runOnce()
    expect(ring.ids).toEqual(['k3', 'k2'])
    text = `${generateKeyRingText('k2')},${k3}`
    await watch.runOnce()
    expect(ring.names).toEqual(parseKeyRing(`${k3},${K2}`).names)
  })
})

describe('a rotation of data keys', () => {
  it('encrypts all values of the owner anew, and of no other, readable at every point', async () => {
    const { secrets, rotation, sealedValues } = processWith(K2)
    const contexts = createContextValueStore(secrets, objects)
    const [ownerId, otherId] = [newId(), newId()]
    const account = { environmentId: ownerId, id: newId() }
    const refs = Array.from({ length: 5 }, () => secretOf(ownerId))
    for (const ref of refs) await secrets.put(pool, ref, { token: ref.subjectId })
    const other = secretOf(otherId)
    await secrets.put(pool, other, { token: 'other' })
    await database.transaction((tx) => contexts.put(tx, account, { big: { x: 1 } }))
    const [object] = await query<{ id: string; content: Uint8Array }>(pool, 'select id, content from context_object')
    await objects.put({ environmentId: ownerId, id: object!.id }, object!.content)
    await execute(pool, 'update context_object set content = null, data_key_id = null')

    const [keyBefore, otherBefore] = [await currentKey(ownerId), await currentKey(otherId)]
    await requestDataKeyRotation(rotation, ownerId)
    await requestDataKeyRotation(rotation, ownerId)
    while (await continueRotation(rotation)) {
      const reader = processWith(K2, K1).secrets
      for (const ref of refs) expect(await reader.get(pool, ref)).toEqual({ token: ref.subjectId })
      const values = await createContextValueStore(reader, objects).read(pool, [account])
      expect(values.get(account.id)).toEqual({ values: { big: { x: 1 } }, errors: new Map() })
    }
    expect(await currentKey(ownerId)).not.toBe(keyBefore)
    expect(await currentKey(otherId)).toBe(otherBefore)
    expect(await rotationProgress(rotation, ownerId)).toMatchObject({ toReplace: 0, toReseal: 0, valuesLeft: 1 })
    await execute(pool, `delete from context_object where delete_at is not null`)
    await passHour()
    await finishRotation(rotation)
    await passHour()
    await finishRotation(rotation)
    for (const each of sealedValues) expect(await each.countUnder(pool, { ownerId, dataKeyId: keyBefore })).toBe(0)
    expect(await query(pool, 'select from data_key where id = :keyBefore', { keyBefore })).toEqual([])
    for (const ref of refs) expect(await secrets.get(pool, ref)).toEqual({ token: ref.subjectId })
  })

  it('keeps a value that was written meanwhile, also one that a transaction wrote under the replaced key', async () => {
    const { secrets, rotation } = processWith(K2)
    const ref = secretOf(newId())
    await secrets.put(pool, ref, { token: 'before', other: 'x' })
    const keyBefore = await currentKey(ref.ownerId)
    const late = Promise.withResolvers<void>()
    const writing = Promise.withResolvers<void>()
    const writer = database.transaction(async (tx) => {
      await secrets.put(tx, ref, { token: 'written' })
      writing.resolve()
      await late.promise
    })
    await writing.promise
    await requestDataKeyRotation(rotation, ref.ownerId)
    const rotating = finishRotation(rotation)
    await waitsForLock()
    late.resolve()
    await Promise.all([writer, rotating])
    expect(await secrets.get(pool, ref)).toEqual({ token: 'written', other: 'x' })
    await passHour()
    await finishRotation(rotation)
    await passHour()
    await finishRotation(rotation)
    expect(await secrets.get(pool, ref)).toEqual({ token: 'written', other: 'x' })
    expect(await query(pool, 'select from data_key where id = :keyBefore', { keyBefore })).toEqual([])
  })

  it('reaches every column of the registry', async () => {
    const { secrets, rotation, sealedValues } = processWith(K2)
    const environmentId = (await bootstrap(database))?.environmentId ?? ''
    const [sessionId, requestId, removalId, entryId] = [newId(), newId(), newId(), newId()]
    await execute(
      pool,
      `insert into link_session (environment_id, id, token_hash, status, tenant_id, is_reconnect, scopes, context, region,
         is_sandbox, object_store_context_fields, redirect_uri, origins, locale, persist_previous_context,
         skip_post_connect_form, expires_at)
       values (:environmentId, :sessionId, '', 'created', 't', false, '{}', '{}', 'eu', false, '{}', '', '{}', '', false, false, now())`,
      { environmentId, sessionId },
    )
    await execute(
      pool,
      `insert into idempotency_key (owner_id, request_id, method) values (:environmentId, :requestId, 'm')`,
      { environmentId, requestId },
    )
    await execute(pool, `insert into account_removal (id, region, sealed) values (:removalId, 'eu', '')`, { removalId })
    await execute(
      pool,
      `insert into call_log_entry (environment_id, id, resource, method, http_method, url, class, started_at, total_ms, attempt,
         bytes_sent, bytes_received, cause)
       values (:environmentId, :entryId, '', '', 'GET', '', 'error', now(), 1, 1, 0, 0, 'call')`,
      { environmentId, entryId },
    )
    const columns = [
      ...SEALED_SESSION_COLUMNS.map((column) => ({ ...column, rowId: sessionId, ownerId: environmentId })),
      { ...SEALED_ANSWERS, rowId: requestId, ownerId: environmentId },
      { ...SEALED_REMOVALS, rowId: removalId, ownerId: removalId },
      { ...SEALED_LOG_CONTENT, rowId: entryId, ownerId: environmentId },
    ]
    for (const { table, column, id, rowId, ownerId, associatedData } of columns) {
      const sealed = await secrets.encryptFor(pool, ownerId, associatedData(rowId), Buffer.from(column))
      await execute(pool, `update ${table} set ${column} = :sealed where ${id} = :rowId`, { sealed, rowId })
    }
    const keysBefore = await Promise.all([environmentId, removalId].map(currentKey))
    await requestDataKeyRotation(rotation, undefined)
    await finishRotation(rotation)
    for (const each of sealedValues)
      for (const [at, ownerId] of [environmentId, removalId].entries())
        expect(await each.countUnder(pool, { ownerId, dataKeyId: keysBefore[at]! }), each.name).toBe(0)
    for (const { table, column, id, rowId, ownerId, associatedData } of columns) {
      const row = await queryOne<{ sealed: Uint8Array }>(
        pool,
        `select ${column} as sealed from ${table} where ${id} = :rowId`,
        { rowId },
      )
      const text = Buffer.from(await secrets.decryptFor(pool, ownerId, associatedData(rowId), row!.sealed)).toString()
      expect(text).toBe(column)
      expect(keysBefore).not.toContain(dataKeyIdOf(row!.sealed))
    }
  })

  it('leaves what cannot be read, counts it, and keeps its key', async () => {
    const { secrets, rotation } = processWith(K2)
    const ref = secretOf(newId())
    await secrets.put(pool, ref, { good: 'x', spoilt: 'y' })
    const keyBefore = await currentKey(ref.ownerId)
    await execute(pool, `update secret set sealed = decode('00', 'hex') || sealed where name = 'spoilt'`)
    await requestDataKeyRotation(rotation, ref.ownerId)
    await finishRotation(rotation)
    expect(await rotationProgress(rotation, ref.ownerId)).toMatchObject({
      toReseal: 0,
      withValuesLeft: 1,
      valuesLeft: 1,
    })
    await passHour()
    await finishRotation(rotation)
    expect(await query(pool, 'select from data_key where id = :keyBefore', { keyBefore })).toHaveLength(1)
  })
})

/** Resolves when a statement of this database waits for a lock. */
async function waitsForLock(): Promise<void> {
  const sql = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  await expect.poll(() => query(pool, sql)).not.toEqual([])
}

async function currentKey(ownerId: string): Promise<string> {
  const row = await queryOne<{ id: string }>(pool, 'select id from data_key where owner_id = :ownerId and is_current', {
    ownerId,
  })
  return row!.id
}

/** As if an hour had passed for replaced keys. */
async function passHour(): Promise<void> {
  await execute(
    pool,
    `update data_key set reseal_at = reseal_at - interval '1 hour', unused_since = unused_since - interval '1 hour'
     where not is_current`,
  )
}
