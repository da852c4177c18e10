import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { generateKeyRingText } from '../../../src/foundation/secrets/index.ts'
import { runCanaries } from '../../lab/faults/support/canary-run.ts'
import type { EchoMode } from '../../lab/faults/support/echo-upstream.ts'
import { caseCount, someCases } from '../../support/case-count.ts'
import { testDatabase } from '../../support/database.ts'
import { removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'

const { url, database } = await testDatabase()

it('a secret that a third party repeats is in no table, response, event, log line or file', async () => {
  const dataDir = temporaryDataDir()
  const storeDir = mkdtempSync(join(tmpdir(), 'patchbay-canaries-'))
  onTestFinished(() => {
    removeDataDir(dataDir)
    rmSync(storeDir, { recursive: true, force: true })
  })
  const environment = {
    DATABASE_URL: url,
    PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('canaries'),
    PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
    PATCHBAY_LOG_LEVEL: 'debug',
  }
  const product = await startProduct({ dataDir, environment })
  const places = { product, database, dataDirs: [dataDir], storeDir }
  const report = await runCanaries(places, {
    modes: someCases<EchoMode>(['401', 'redirect'], 1),
    authorizations: ['basic'],
  })
  expect(report.hits).toEqual([])
  expect(report.echoed).toBeGreaterThan(caseCount(25, 50))
  expect(report.answers).toBeGreaterThan(caseCount(50, 100))
})
