/**
 * Two tenants beside each other in one product: every id of the one, at every place of every request of the other, over
 * every wire; foreign ids must be answered like unknown ones, and nothing may have changed. Places come from the contract.
 */

import { generateKeyRingText } from '../../../src/foundation/secrets/index.ts'
import { createClient, PROTOCOLS, type Protocol, type Sender } from '../../support/client.ts'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { KINDS, tokenFor } from '../../support/operations.ts'
import { removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { createApiEnvironment, createApiTenant, seedTenant, type Tenant } from '../../support/seeded-tenant.ts'
import {
  addHeldRun,
  addHistory,
  compareForeign,
  idLocations,
  isOfEnvironment,
  sendAs,
  type TenancyFixture,
} from '../../support/tenancy-matrix.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'

const PLACES_MIN = 70

await using durable = await startDurableDatabase()
const dataDir = temporaryDataDir()
const environment = {
  DATABASE_URL: durable.url,
  PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('faults'),
  PATCHBAY_RATE_LIMIT: '0',
  PATCHBAY_RATE_LIMIT_ADDRESS: '0',
}
const command = [process.execPath, new URL('../../../src/main.ts', import.meta.url).pathname, 'serve']
const product = await startProduct({ dataDir, environment, command })
const app = {
  first: { teamToken: product.bootstrap.team_token },
  client: (wire: Protocol, sender: Sender = {}) => createClient(wire, product.url, sender),
}

async function worldOf(tenant: Tenant): Promise<TenancyFixture> {
  const client = app.client('connect', { token: tenant.environmentToken })
  const made = await addHeldRun(client, await seedTenant(app, tenant))
  return { ...made, ...(await addHistory(durable.database, made)) }
}

/** Everything a tenant can list, as text. */
async function everythingOf(world: TenancyFixture): Promise<string> {
  const client = app.client('connect')
  const lists = KINDS.map((kind) => client.ok(kind.list, { page_size: 1000 }, { token: tokenFor(kind, world) }))
  return JSON.stringify(await Promise.all(lists))
}

const tenant = await createApiTenant(app)
const own = await worldOf(tenant)
const sibling = await worldOf({ ...tenant, ...(await createApiEnvironment(app, tenant.teamToken)) })
const foreign = await worldOf(await createApiTenant(app))
const before = [await everythingOf(sibling), await everythingOf(foreign)]
const places = idLocations()
const differences: string[] = []
let asked = 0
for (const wire of PROTOCOLS) {
  const client = app.client(wire)
  const ofEnvironment = sendAs(client, product.url, { authorization: `Bearer ${own.environmentToken}` })
  const headers = { authorization: `Bearer ${own.teamToken}`, 'patchbay-environment': own.environmentId }
  const ofTeam = sendAs(client, product.url, headers)
  for (const place of places) {
    const found = [await compareForeign(ofTeam, place, own, foreign)]
    if (isOfEnvironment(place)) found.push(await compareForeign(ofEnvironment, place, own, sibling))
    asked += found.length
    differences.push(...found.filter((difference) => difference !== undefined).map((text) => `${wire} ${text}`))
  }
  client.close()
}
const after = [await everythingOf(sibling), await everythingOf(foreign)]
await product.stop()
removeDataDir(dataDir)
for (const difference of differences) process.stderr.write(`${difference}\n`)
reportAtLeast('tenancy/places', places.length, 'places', PLACES_MIN)
reportAtLeast('tenancy/requests', asked * 2, 'requests', PLACES_MIN * 6)
reportAtMost('tenancy/told-apart', differences.length, 'places', 0)
reportAtMost('tenancy/changed', before.filter((text, index) => text !== after[index]).length, 'tenants', 0)
