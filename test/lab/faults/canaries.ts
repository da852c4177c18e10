/**
 * Plants secrets in every slot of a product that runs as a process, with a daemon beside it, at debug level; third parties,
 * token endpoints and receivers repeat everything they are sent, in every encoding. Then everything that is stored, sent or
 * logged is searched for them.
 *
 * `bootstrap.json` holds the first tokens by design; sealed columns are searched like all others.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKeyRingText } from '../../../src/foundation/secrets/index.ts'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { AUTHORIZATION_NAMES } from './support/canary-definitions.ts'
import { runCanaries } from './support/canary-run.ts'
import { ECHO_MODES } from './support/echo-upstream.ts'

const dataDir = temporaryDataDir()
const storeDir = mkdtempSync(join(tmpdir(), 'patchbay-canaries-'))
try {
  await using server = await startDurableDatabase()
  const environment = {
    DATABASE_URL: server.url,
    PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('canaries'),
    PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
    PATCHBAY_LOG_LEVEL: 'debug',
    PATCHBAY_RATE_LIMIT: '0',
  }
  const product = await startProduct({ dataDir, environment })
  const places = { product, database: server.database, dataDirs: [dataDir, server.dataDir], storeDir }
  const report = await runCanaries(places, { modes: ECHO_MODES, authorizations: AUTHORIZATION_NAMES })
  for (const hit of report.hits) process.stderr.write(`${hit}\n`)
  reportAtLeast('canaries-planted', report.planted, 'secrets', 200)
  reportAtLeast('canaries-echoed', report.echoed, 'requests', 500)
  reportAtLeast('canaries-searched', report.haystacks, 'texts', 1_000)
  reportAtMost('canaries-found', report.hits.length, 'hits', 0)
} finally {
  removeDataDir(dataDir)
  rmSync(storeDir, { recursive: true, force: true })
}
