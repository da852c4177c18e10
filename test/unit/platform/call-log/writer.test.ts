import { describe, expect, it } from 'vitest'
import type { LoggedCall } from '../../../../src/engine/proxy/index.ts'
import { lowestIdAt, newId } from '../../../../src/foundation/base/index.ts'
import { type Database, execute, query, queryOne } from '../../../../src/foundation/database/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import { CallLogWriter, countDrops, getLogEntry } from '../../../../src/platform/call-log/index.ts'
import { testDatabase } from '../../../support/database.ts'
import { seedEnvironment } from '../../../support/seed-rows.ts'

const { database } = await testDatabase()
const { pool } = database
const secrets = createSecretStore(parseKeyRing(generateKeyRingText('k1')))

const callOf = (environmentId: string): LoggedCall => ({
  id: newId(),
  environmentId,
  integratedAccountId: undefined,
  environmentIntegrationId: undefined,
  integrationName: undefined,
  resource: '',
  method: '',
  httpMethod: 'GET',
  url: 'https://api.example.com/',
  status: 200,
  class: 'success',
  errorMessage: undefined,
  startedAt: new Date(),
  totalMs: 1,
  attempt: 1,
  bytesSent: 0,
  bytesReceived: 0,
  upstreamRequestId: undefined,
  cause: { kind: 'call' },
  requestId: undefined,
  content: undefined,
})

/** A writer that writes when it is told to. */
function heldWriter(transaction: Database['transaction'] = (work) => database.transaction(work)) {
  const dropped: number[] = []
  const writer = new CallLogWriter({
    database: { transaction },
    secrets,
    clock: { sleep: () => new Promise(() => undefined) },
    random: Math.random,
    sampleEvery: 1,
    onWriteError: () => undefined,
  })
  writer.onDrop = (entries) => dropped.push(entries)
  return { writer, dropped }
}

async function countOf(environmentId: string): Promise<number> {
  const rows = await query(database.pool, 'select id from call_log_entry where environment_id = :environmentId', {
    environmentId,
  })
  return rows.length
}

it('drops and counts what an environment has too much of, and nothing of another', async () => {
  const { writer, dropped } = heldWriter()
  const [busy, quiet] = [newId(), newId()]
  for (let n = 0; n < 2_100; n++) writer.record(callOf(busy))
  writer.record(callOf(quiet))
  await writer.flush()

  expect([await countOf(busy), await countOf(quiet)]).toEqual([2_000, 1])
  expect([await countDrops(pool, busy), await countDrops(pool, quiet), dropped.length]).toEqual([100, 0, 100])
})

it('counts what all processes dropped, also those that have ended', async () => {
  const environmentId = newId()
  for (const { writer } of [heldWriter(), heldWriter()]) {
    for (let n = 0; n < 2_003; n++) writer.record(callOf(environmentId))
    await writer[Symbol.asyncDispose]()
  }
  expect(await countDrops(pool, environmentId)).toBe(6)
  expect(await countDrops(pool, newId())).toBe(0)
})

it('stores the count of what a failed write dropped with the next one', async () => {
  let isBroken = true
  const { writer, dropped } = heldWriter(async (work) => {
    if (isBroken) throw new Error('the database failed')
    return await database.transaction(work)
  })
  const environmentId = newId()
  for (let n = 0; n < 3; n++) writer.record(callOf(environmentId))
  await writer.flush()
  await writer.flush()
  expect([await countDrops(pool, environmentId), dropped.length]).toEqual([0, 3])
  isBroken = false
  await writer.flush()
  expect([await countDrops(pool, environmentId), await countOf(environmentId)]).toEqual([3, 0])
})

it('bounds the bytes of an environment, and has room again after a write', async () => {
  const { writer } = heldWriter()
  const environmentId = newId()
  const content = { requestHeaders: {}, requestBody: 'x'.repeat(16_384), responseHeaders: {}, responseBody: '' }
  for (let n = 0; n < 200; n++) writer.record({ ...callOf(environmentId), content })
  await writer.flush()
  const stored = await countOf(environmentId)
  expect(stored).toBeLessThan(130)
  expect(await countDrops(pool, environmentId)).toBe(200 - stored)
  writer.record({ ...callOf(environmentId), content })
  await writer[Symbol.asyncDispose]()
  expect(await countOf(environmentId)).toBe(stored + 1)
})

it('stores text that PostgreSQL does not take as it is', async () => {
  const { writer } = heldWriter()
  const environmentId = newId()
  writer.record({ ...callOf(environmentId), class: 'error', errorMessage: 'a\0b\ud800' })
  await writer.flush()
  const [row] = await query<{ readonly errorMessage: string }>(
    database.pool,
    'select error_message from call_log_entry where environment_id = :environmentId',
    { environmentId },
  )
  expect(row?.errorMessage).toBe('ab\ufffd')
})

describe('headers and bodies', () => {
  const content = {
    requestHeaders: { accept: 'text/plain' },
    requestBody: 'request-canary',
    responseHeaders: {},
    responseBody: 'cut here: \ud83d',
  }

  it('are stored encrypted, and read with the entry', async () => {
    const { writer } = heldWriter()
    const call = { ...callOf(await seedEnvironment(database)), content }
    writer.record(call)
    await writer.flush()
    const rows = await query<{ readonly content: Uint8Array }>(pool, 'select * from call_log_entry where id = :id', {
      id: call.id,
    })
    expect(rows).toHaveLength(1)
    expect(Buffer.from(rows[0]?.content ?? []).toString('latin1')).not.toMatch(/canary|accept/)
    expect(JSON.stringify({ ...rows[0], content: '' })).not.toMatch(/canary|text.plain/)
    expect(await getLogEntry(secrets, pool, call.environmentId, call.id)).toMatchObject({
      hasContent: true,
      content: { ...content, responseBody: 'cut here: \ufffd' },
      contentError: undefined,
    })
  })

  it('take one read of the data key for all of an environment', async () => {
    const { writer } = heldWriter()
    const [first, second] = [await seedEnvironment(database), await seedEnvironment(database)]
    const calls = [first, first, second, first].map((environmentId) => ({ ...callOf(environmentId), content }))
    for (const call of calls) writer.record(call)
    const reads: string[] = []
    const onQuery = ({ sql }: { readonly sql: string }) => reads.push(sql)
    pool.on('query', onQuery)
    await writer.flush()
    pool.off('query', onQuery)
    expect(reads.filter((sql) => /^select .* from "data_key"/.test(sql)).length).toBeLessThanOrEqual(4)
    for (const { environmentId, id } of calls)
      expect((await getLogEntry(secrets, pool, environmentId, id)).content).toBeDefined()
  })

  it('whose key is gone leave the entry, with the reason', async () => {
    const { writer } = heldWriter()
    const call = { ...callOf(await seedEnvironment(database)), content }
    writer.record(call)
    await writer.flush()
    await secrets.destroyKeys(pool, call.environmentId)
    const unaware = createSecretStore(parseKeyRing(generateKeyRingText('k1')))
    const entry = await getLogEntry(unaware, pool, call.environmentId, call.id)
    expect(entry).toMatchObject({ id: call.id, hasContent: true, content: undefined })
    expect(entry.contentError).toContain('cannot be decrypted')
  })

  it('of an environment that was deleted meanwhile are not stored, and it gets no key', async () => {
    const { writer } = heldWriter()
    const [gone, kept] = [await seedEnvironment(database), await seedEnvironment(database)]
    const calls = [gone, kept].map((environmentId) => ({ ...callOf(environmentId), content }))
    for (const call of calls) writer.record(call)
    await execute(pool, 'delete from environment where id = :gone', { gone })
    await writer.flush()
    const stored = calls.map(({ id }) => queryOne(pool, 'select content from call_log_entry where id = :id', { id }))
    expect(await Promise.all(stored)).toMatchObject([{ content: null }, { content: expect.any(Uint8Array) }])
    expect(await query(pool, 'select from data_key where owner_id = :gone', { gone })).toEqual([])
  })
})

/** The requests of an environment by class, and how many of them were in each bucket of durations. */
async function hoursOf(environmentId: string) {
  return await query<{ readonly class: string; readonly counts: readonly number[] }>(
    database.pool,
    'select class, counts::integer[] as counts from call_hour where environment_id = :environmentId order by hour, class',
    { environmentId },
  )
}

describe('requests by the hour', () => {
  it('count also those whose entries are dropped, by class and duration', async () => {
    const { writer } = heldWriter()
    const environmentId = newId()
    for (let n = 0; n < 2_100; n++) writer.record(callOf(environmentId))
    writer.record({ ...callOf(environmentId), class: 'timeout', totalMs: 10_000 })
    writer.record({ ...callOf(environmentId), class: 'timeout', totalMs: 10_001 })
    await writer.flush()

    expect(await countOf(environmentId)).toBe(2_000)
    expect(await hoursOf(environmentId)).toEqual([
      { class: 'success', counts: [2_100, 0, 0, 0, 0, 0, 0, 0, 0] },
      { class: 'timeout', counts: [0, 0, 0, 0, 0, 0, 0, 1, 1] },
    ])
  })

  it('are kept apart by the hour in which the request ended', async () => {
    const { writer } = heldWriter()
    const environmentId = newId()
    for (const at of ['2031-03-01T10:59:59.999Z', '2031-03-01T11:00:00Z', '2031-03-01T11:59:59Z'])
      writer.record({ ...callOf(environmentId), id: lowestIdAt(new Date(at)).replace(/0$/, '1') })
    await writer.flush()
    expect((await hoursOf(environmentId)).map(({ counts }) => counts[0])).toEqual([1, 2])
  })

  it('count once when a transaction is tried again', async () => {
    const { writer } = heldWriter(async (work) => {
      const undone = database.transaction(async (tx) => {
        await work(tx)
        throw new Error('as by a deadlock')
      })
      await undone.catch(() => undefined)
      return await database.transaction(work)
    })
    const environmentId = newId()
    writer.record(callOf(environmentId))
    await writer.flush()
    expect(await hoursOf(environmentId)).toMatchObject([{ counts: [1, 0, 0, 0, 0, 0, 0, 0, 0] }])
  })

  it('wait for the next batch when the entries cannot be written', async () => {
    const { writer, dropped } = heldWriter()
    const environmentId = newId()
    writer.record({ ...callOf(environmentId), status: 100_000 })
    await writer.flush()
    expect([dropped.length, await hoursOf(environmentId)]).toEqual([1, []])

    writer.record(callOf(environmentId))
    await writer.flush()
    expect(await hoursOf(environmentId)).toMatchObject([{ counts: [2, 0, 0, 0, 0, 0, 0, 0, 0] }])
  })

  it('count once when it is not known whether the commit took place', async () => {
    let commits = 0
    const { writer } = heldWriter(async (work) => {
      const result = await database.transaction(work)
      if (commits++ === 0) throw new Error('the connection was lost')
      return result
    })
    const environmentId = newId()
    for (let n = 0; n < 2; n++) {
      writer.record(callOf(environmentId))
      await writer.flush()
    }
    expect(await hoursOf(environmentId)).toMatchObject([{ counts: [2, 0, 0, 0, 0, 0, 0, 0, 0] }])
  })

  it('of two processes are added up', async () => {
    const environments = Array.from({ length: 20 }, () => newId())
    const writers = [heldWriter().writer, heldWriter().writer]
    for (let round = 0; round < 5; round++) {
      for (const [at, writer] of writers.entries())
        for (const id of at === 0 ? environments : environments.toReversed()) writer.record(callOf(id))
      await Promise.all(writers.map((writer) => writer.flush()))
    }
    const counts = await Promise.all(environments.map(async (id) => (await hoursOf(id))[0]?.counts[0]))
    expect(counts).toEqual(environments.map(() => 10))
  })
})
