/**
 * Every address of a definition, found in its schema × every root of a placeholder in it × every way to write such a value × three
 * attackers: another team that installs the definition, a customer, and a caller of methods and actions. Every secret is a canary;
 * the attacker's host listens, and none may arrive there.
 */

import { generateKeyRingText } from '../../../src/foundation/secrets/index.ts'
import { createClient, type Protocol, type Sender } from '../../support/client.ts'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { runDiversionGuard } from './support/diversion-guard.ts'

/** Of all attacks, one in so many; PATCHBAY_FAULTS_EVERY=1 tries all, which takes half an hour. */
const EVERY_NTH = Number(process.env.PATCHBAY_FAULTS_EVERY ?? 7)

await using durable = await startDurableDatabase()
const dataDir = temporaryDataDir()
const environment = {
  DATABASE_URL: durable.url,
  PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('faults'),
  PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
  PATCHBAY_RATE_LIMIT: '0',
  PATCHBAY_RATE_LIMIT_ADDRESS: '0',
}
const product = await startProduct({ dataDir, environment })
const report = await runDiversionGuard(
  {
    url: product.url,
    first: { teamToken: product.bootstrap.team_token },
    client: (wire: Protocol, sender: Sender = {}) => createClient(wire, product.url, sender),
  },
  { everyNth: EVERY_NTH },
)
await product.stop()
removeDataDir(dataDir)
for (const line of [...report.leaks, ...report.unknown]) process.stderr.write(`${line}\n`)
reportAtLeast('diversion/attacks', report.attacks, 'attacks', 1_000 / EVERY_NTH)
reportAtLeast('diversion/reached', report.reached, 'attacks', 50 / EVERY_NTH)
reportAtMost('diversion/leaks', report.leaks.length, 'secrets', 0)
reportAtMost('diversion/unknown', report.unknown.length, 'settings', 0)
