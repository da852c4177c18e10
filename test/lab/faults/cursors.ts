/**
 * Every value that a client is given and returns: cursors of calls, of unified resources and of tools, states of streamed
 * lists, tokens of form options, of lists of tools and of every list of the contract. Each is forged leaf by leaf and over ranges of
 * bytes and tried at other places; none but the value itself may be taken, and a third party that decodes every path before it
 * routes must see the addresses of the lists alone.
 */

import { generateKeyRingText } from '../../../src/foundation/secrets/index.ts'
import { createClient, type Protocol, type Sender } from '../../support/client.ts'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { createApiTenant } from '../../support/seeded-tenant.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { runCursorGuard } from './support/cursor-guard.ts'
import { startPagedUpstream } from './support/paged-upstream.ts'

const PLAN = { bytesMax: 64, forgedMax: 200, othersMax: 20, choose: <Place>(places: readonly Place[]) => places }
const DOORS_MIN = 60

await using durable = await startDurableDatabase()
await using upstream = await startPagedUpstream()
const dataDir = temporaryDataDir()
const environment = {
  DATABASE_URL: durable.url,
  PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('faults'),
  PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
  PATCHBAY_RATE_LIMIT: '0',
  PATCHBAY_RATE_LIMIT_ADDRESS: '0',
}
const product = await startProduct({ dataDir, environment })
const app = {
  url: product.url,
  first: { teamToken: product.bootstrap.team_token },
  client: (wire: Protocol, sender: Sender = {}) => createClient(wire, product.url, sender),
  database: durable.database,
}
const tenant = await createApiTenant(app)
const report = await runCursorGuard({ ...app, tenant }, upstream, PLAN)
await product.stop()
removeDataDir(dataDir)
for (const line of [...report.accepted, ...report.broken, ...report.traversed].slice(0, 200))
  process.stderr.write(`${line}\n`)
process.stderr.write(`without a second page: ${report.untried.join(', ')}\n`)
reportAtLeast('cursors/places', report.doors, 'places', DOORS_MIN)
reportAtLeast('cursors/forged', report.sent, 'values', DOORS_MIN * 20)
reportAtMost('cursors/taken', report.accepted.length, 'values', 0)
reportAtMost('cursors/rejected-own', report.broken.length, 'places', 0)
reportAtMost('cursors/left-path', report.traversed.length, 'ids', 0)
