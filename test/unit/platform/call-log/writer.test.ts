import { expect, it } from 'vitest'
import type { LoggedCall } from '../../../../src/engine/proxy/index.ts'
import { newId } from '../../../../src/foundation/base/index.ts'
import { query } from '../../../../src/foundation/database/index.ts'
import { CallLogWriter } from '../../../../src/platform/call-log/index.ts'
import { testDatabase } from '../../../support/database.ts'

const { database } = await testDatabase()

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
  content: undefined,
})

/** A writer that writes when it is told to. */
function heldWriter(pool: typeof database.pool = database.pool) {
  const dropped: number[] = []
  const writer = new CallLogWriter({
    database: { pool },
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
  expect([writer.droppedOf(busy), writer.droppedOf(quiet), dropped.length]).toEqual([100, 0, 100])
})

it('bounds the bytes of an environment, and has room again after a write', async () => {
  const { writer } = heldWriter()
  const environmentId = newId()
  const content = { requestHeaders: {}, requestBody: 'x'.repeat(16_384), responseHeaders: {}, responseBody: '' }
  for (let n = 0; n < 200; n++) writer.record({ ...callOf(environmentId), content })
  const { length: stored } = { length: 200 - writer.droppedOf(environmentId) }
  expect(stored).toBeLessThan(130)
  await writer.flush()
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
