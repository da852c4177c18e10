import { describe, expect, inject, it } from 'vitest'
import { Database, migrate } from '../../src/storage/index.ts'
import { createDatabase, dropDatabase } from '../support/database.ts'

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
})
