import { describe, expect, inject, it } from 'vitest'
import { Database, migrate, query } from '../../../../src/foundation/database/index.ts'
import { createDatabase, dropDatabase, testDatabase } from '../../../support/database.ts'

describe('migrations', () => {
  it('run once when 16 processes start at the same moment on an empty database', async () => {
    const { serverUrl } = inject('databases')
    const name = `patchbay_m_${process.pid}`
    const url = await createDatabase(serverUrl, name)
    const starters = Array.from({ length: 16 }, () => new Database({ target: { kind: 'url', url }, poolMax: 1 }))
    const reports = await Promise.all(starters.map(migrate))
    expect(reports.filter(({ applied }) => applied.length > 0)).toHaveLength(1)
    for (const starter of starters) await starter[Symbol.asyncDispose]()
    await dropDatabase(serverUrl, name)
  })

  it('are waited for by the other processes, however long they take', async () => {
    const { serverUrl } = inject('databases')
    const name = `patchbay_w_${process.pid}`
    const url = await createDatabase(serverUrl, name)
    const [first, second] = [5_000, 100].map(
      (statementTimeoutMs) => new Database({ target: { kind: 'url', url }, poolMax: 1, statementTimeoutMs }),
    ) as [Database, Database]
    const migrating = first.transaction(async (tx) => {
      await query(tx, 'select pg_advisory_xact_lock(727064101)')
      const waiting = migrate(second)
      await query(tx, 'select pg_sleep(0.4)')
      return { waiting }
    })
    expect((await (await migrating).waiting).applied).not.toEqual([])
    for (const each of [first, second]) await each[Symbol.asyncDispose]()
    await dropDatabase(serverUrl, name)
  })
})

describe('a connection', () => {
  it('waits neither for a lock, nor in a statement or a transaction, without end', async () => {
    const { database } = await testDatabase()
    const names = ['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout']
    const found = await query(
      database.pool,
      'select name, setting from pg_settings where name = any(:names) order by name',
      { names },
    )
    expect(found).toEqual([
      { name: 'idle_in_transaction_session_timeout', setting: '15000' },
      { name: 'lock_timeout', setting: '10000' },
      { name: 'statement_timeout', setting: '30000' },
    ])
  })
})
