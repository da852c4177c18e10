import { describe, expect, inject, it } from 'vitest'
import { Database, migrate } from '../../src/storage/index.ts'
import { createDatabase } from '../support/database.ts'

describe('migrations', () => {
  it('run once when 16 processes start at the same moment on an empty database', async () => {
    const host = inject('databaseHost')
    const name = `migrate_${process.pid}`
    await createDatabase(host, name)
    const open = () =>
      new Database({ target: { kind: 'socket', host, port: 5432, user: 'patchbay', database: name }, poolMax: 1 })
    const starters = Array.from({ length: 16 }, open)
    const reports = await Promise.all(starters.map(migrate))
    expect(reports.filter(({ applied }) => applied.length > 0)).toHaveLength(1)
    for (const starter of starters) await starter[Symbol.asyncDispose]()
  })
})
