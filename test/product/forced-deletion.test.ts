import { describe, expect, it } from 'vitest'
import { EnvironmentService } from '../../gen/patchbay/v1/environment_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { LinkTokenService } from '../../gen/patchbay/v1/link_token_service_pb.ts'
import { TeamService } from '../../gen/patchbay/v1/team_service_pb.ts'
import { query } from '../../src/foundation/database/database.ts'
import { startTestApp } from '../support/app.ts'
import { someCases } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { EVENTUALLY } from '../support/eventually.ts'
import { addAccounts, statementsOf } from '../support/many-accounts.ts'
import { OPERATIONS } from '../support/operations.ts'
import { createApiTenant, type SeededTenant, seedTenant } from '../support/seeded-tenant.ts'

const app = await startTestApp()
const operator = app.client('connect', { token: app.first.teamToken })
type Method = Parameters<Client['ok']>[0]

async function tenantWith(accounts: number): Promise<SeededTenant> {
  const tenant = await seedTenant(app, await createApiTenant(app))
  await addAccounts(app.database, tenant, accounts)
  return tenant
}

/** Every operation of the contract with `force`. */
const FORCED = OPERATIONS.filter(({ input }) => input.fields.some(({ name }) => name === 'force'))

/** The id of what each forced deletion of the contract deletes; undefined: it holds no accounts. */
const TARGETS: Readonly<Record<string, ((tenant: SeededTenant) => string) | undefined>> = {
  DeleteTeam: ({ teamId }) => teamId,
  DeleteEnvironment: ({ environmentId }) => environmentId,
  DeleteIntegration: ({ integrationId }) => integrationId,
  DeleteEnvironmentIntegration: ({ environmentIntegrationId }) => environmentIntegrationId,
  DeleteIntegratedAccount: undefined,
  DeleteSyncJob: undefined,
  DeleteUnifiedModel: undefined,
  DeleteWebhook: undefined,
}
const OF_ACCOUNTS = FORCED.filter(({ name }) => TARGETS[name] !== undefined)

/** A client that may delete it. */
function clientFor({ name }: { readonly name: string }, { teamToken, environmentToken }: SeededTenant): Client {
  if (name === 'DeleteTeam') return operator
  return app.client('connect', { token: name === 'DeleteEnvironmentIntegration' ? environmentToken : teamToken })
}

async function remove(method: Method, tenant: SeededTenant): Promise<void> {
  await clientFor(method, tenant).ok(method, { id: TARGETS[method.name]?.(tenant) ?? '', force: true })
}

const rowsOf = async (table: string, column: string, id: string) =>
  (await query(app.database.pool, `select 1 from ${table} where ${column} = :id`, { id })).length

const unfinished = async (id: string) =>
  (await query(app.database.pool, `select 1 from task where params->>'id' = :id and due_at is not null`, { id })).length

it('knows what each deletion by force deletes', () => {
  expect(FORCED.map(({ name }) => name).toSorted()).toEqual(Object.keys(TARGETS).toSorted())
})

describe.each(someCases(OF_ACCOUNTS, 1).map((method) => [method.name, method] as const))(
  '%s with many accounts',
  (_, method) => {
    it('takes no more statements for more of them', async () => {
      const costs: number[] = []
      for (const accounts of [60, 120]) {
        const tenant = await tenantWith(accounts)
        costs.push(await statementsOf(app.database, () => remove(method, tenant)))
      }
      // A token may be looked up once more or less.
      for (const cost of costs) expect(Math.abs(cost - (costs[0] ?? 0))).toBeLessThan(5)
    })
  },
)

const PARENTS = [
  ['DeleteTeam', TeamService.method.deleteTeam, 'team'],
  ['DeleteEnvironment', EnvironmentService.method.deleteEnvironment, 'environment'],
  ['DeleteIntegration', IntegrationService.method.deleteIntegration, 'integration'],
] as const

describe.each(someCases(PARENTS, 1))('%s with many accounts', (name, method) => {
  it('leaves nothing that is found from its answer on, and its name is free', async () => {
    const tenant = await tenantWith(120)
    const id = TARGETS[name]?.(tenant) ?? ''
    const get = {
      DeleteTeam: TeamService.method.getTeam,
      DeleteEnvironment: EnvironmentService.method.getEnvironment,
      DeleteIntegration: IntegrationService.method.getIntegration,
    }[name]
    const admin = clientFor(method, tenant)
    const { name: held } = (await admin.ok(get, { id })) as unknown as { readonly name: string }
    const link = app.client('connect', { token: tenant.environmentToken })
    await remove(method, tenant)
    expect(await rowsOf('integrated_account', 'environment_id', tenant.environmentId)).toBeGreaterThan(0)
    expect(await admin.callError(get, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    expect(await admin.callError(method, { id, force: true })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    if (name === 'DeleteEnvironment') await admin.ok(EnvironmentService.method.createEnvironment, { name: held })
    if (name !== 'DeleteIntegration')
      await expect
        .poll(async () => (await link.callError(LinkTokenService.method.listLinkTokens, {})).reason, EVENTUALLY)
        .toBe('TOKEN_INVALID')
    const address = `${app.url}/integrated-account-webhook/${tenant.integratedAccountId}`
    expect((await fetch(address, { method: 'POST', body: '{}' })).status).toBe(404)
  })
})

describe.each(someCases(PARENTS, 1))('%s with many accounts', (name, method, table) => {
  it('is finished by a task after workers that stop between its steps, and nothing of it is left', async () => {
    const tenant = await tenantWith(170)
    const id = TARGETS[name]?.(tenant) ?? ''
    const before = await rowsOf('integrated_account', 'environment_id', tenant.environmentId)
    await remove(method, tenant)
    const left = () => rowsOf('integrated_account', 'environment_id', tenant.environmentId)
    expect(await left()).toBeLessThan(before)
    const first = app.startWorker()
    await first.drain()
    const second = app.startWorker()
    await expect.poll(() => unfinished(id), EVENTUALLY).toBe(0)
    await second.drain()
    expect(await left()).toBe(0)
    expect(await rowsOf(table, 'id', id)).toBe(0)
    if (table === 'integration') return
    for (const each of ['environment_integration', 'sync_job', 'webhook', 'event', 'link_session', 'tool_server'])
      expect([each, await rowsOf(each, 'environment_id', tenant.environmentId)]).toEqual([each, 0])
    expect(await rowsOf('secret', 'owner_id', tenant.environmentId)).toBe(0)
  })
})
