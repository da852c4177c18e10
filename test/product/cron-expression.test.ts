import { describe, expect, it } from 'vitest'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { statusOver, TIME } from '../support/matchers.ts'
import { NEVER_FIRES, seedTenant } from '../support/seeded-tenant.ts'

const {
  createSyncJobCronTrigger: create,
  getSyncJobCronTrigger: get,
  listSyncJobCronTriggers: list,
  updateSyncJobCronTrigger: update,
  pauseSyncJobCronTrigger: pause,
  previewSyncJobCronTrigger: preview,
} = SyncJobCronTriggerService.method

const app = await startTestApp()
const clients = app.clients()
const world = await seedTenant(app, app.first)
const plan = { sync_job_id: world.syncJobId, integrated_account_id: world.integratedAccountId }

const make = (client: Client, fields: JsonObject = {}) =>
  client.ok(create, { ...plan, cron_expression: NEVER_FIRES, daemon_group_key: 'warehouse', ...fields })

async function count(client: Client): Promise<number> {
  const { sync_job_cron_triggers } = await client.ok(list, { page_size: 1000 })
  return Array.isArray(sync_job_cron_triggers) ? sync_job_cron_triggers.length : Number.NaN
}

const REFUSED_EXPRESSIONS = [
  { expression: '', rule: 'cron.field_count' },
  { expression: '* * * *', rule: 'cron.field_count' },
  { expression: '0 0 1 1 * * 2027', rule: 'cron.field_count' },
  { expression: 'H * * * *', rule: 'cron.hash' },
  { expression: '@reboot', rule: 'cron.reboot' },
  { expression: '@sometimes', rule: 'cron.nickname' },
  { expression: '0 0 30 2 *', rule: 'cron.never' },
  { expression: '60 * * * *', rule: 'cron.value' },
  { expression: '* * * * MOO', rule: 'cron.value' },
]

describe.each(inTurn(clients))('a cron expression that is rejected over $wire', (client) => {
  const refused = (rule: string) => ({
    code: 'INVALID_ARGUMENT',
    reason: 'CRON_EXPRESSION_INVALID',
    httpStatus: statusOver(client, 400),
    violations: [{ field: 'cron_expression', rule, description: expect.any(String) }],
  })

  it.each(REFUSED_EXPRESSIONS)(
    '"$expression" is told as $rule by create, update and preview alike',
    async ({ expression, rule }) => {
      const trigger = await make(client)
      const before = await count(client)
      const given = { cron_expression: expression }

      expect(await client.callError(create, { ...plan, daemon_group_key: 'g', ...given })).toMatchObject(refused(rule))
      expect(await client.callError(update, { id: trigger.id, ...given })).toMatchObject(refused(rule))
      expect(await client.callError(update, { id: trigger.id, daemon_group_key: 'g', ...given })).toMatchObject(
        refused(rule),
      )
      expect(await client.callError(preview, given)).toMatchObject(refused(rule))
      expect(await count(client)).toBe(before)
      expect(await client.ok(get, { id: trigger.id })).toEqual(trigger)
    },
  )
})

describe.each(inTurn(clients))('a cron expression that is accepted over $wire', (client) => {
  it.each([
    '*/5 * * * *',
    '30 0 0 1 1 *',
    '0 0 L * *',
    '0 0 * * 5L',
    '0 0 * * MON#2',
    '0 9-17/2 * JAN,JUN MON-FRI',
    '@daily',
  ])('%s', async (expression) => {
    const { id } = await make(client, { cron_expression: expression })
    await client.ok(pause, { id })
    expect(await client.ok(get, { id })).toMatchObject({ cron_expression: expression })
  })
})

describe.each(inTurn(clients))('previewing an expression over $wire', (client) => {
  it('tells the ticks after a moment', async () => {
    const request = { cron_expression: '*/20 * * * *', count: 4, after: '2028-02-28T23:30:00Z' }
    expect(await client.ok(preview, request)).toEqual({
      ticks: [
        '2028-02-28T23:40:00.000Z',
        '2028-02-29T00:00:00.000Z',
        '2028-02-29T00:20:00.000Z',
        '2028-02-29T00:40:00.000Z',
      ],
    })
  })

  it('tells five after now unless told otherwise', async () => {
    const { ticks: next } = await client.ok(preview, { cron_expression: '@hourly' })
    expect(next).toEqual([TIME, TIME, TIME, TIME, TIME])
  })

  it.each([0, 101])('does not tell %i of them', async (number) => {
    const { violations } = await client.callError(preview, { cron_expression: '@hourly', count: number })
    expect(violations).toEqual([expect.objectContaining({ field: 'count', rule: 'int32.gte_lte' })])
  })
})
