import { describe, expect, it } from 'vitest'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { overWire } from '../support/case-count.ts'
import { idFieldsOf, namesInPath, OPERATIONS } from '../support/operations.ts'
import {
  createApiEnvironment,
  createApiTenant,
  NEVER_FIRES,
  type SeededTenant,
  seedTenant,
} from '../support/seeded-tenant.ts'

const app = await startTestApp()
const own = await seedTenant(app, app.first)
/** Another environment of the same team. */
const sibling = await seedTenant(app, { ...app.first, ...(await createApiEnvironment(app, app.first.teamToken)) })
/** Another team; it is not the operator, whom teams are no secret to. */
const otherTenant = await seedTenant(app, await createApiTenant(app))

const plan = (world: SeededTenant) => ({
  sync_job_id: world.syncJobId,
  integrated_account_id: world.integratedAccountId,
  daemon_group_key: 'group',
})
const scheduled = (world: SeededTenant) => ({ ...plan(world), cron_expression: NEVER_FIRES })
const { method: triggers } = SyncJobCronTriggerService

describe.each(app.clients({ token: own.environmentToken }))('a webhook of another environment over $wire', (client) => {
  it.each([
    { method: triggers.createSyncJobCronTrigger, request: scheduled },
    {
      method: triggers.updateSyncJobCronTrigger,
      request: ({ syncJobCronTriggerId }: SeededTenant) => ({ id: syncJobCronTriggerId }),
    },
    { method: SyncJobRunService.method.createSyncJobRun, request: plan },
  ])('is no destination: $method.name', async ({ method, request }) => {
    const { daemon_group_key: _, ...rest }: JsonObject = request(own)

    for (const webhookId of [newId(), sibling.webhookId, otherTenant.webhookId]) {
      const rejection = await client.callError(method, { ...rest, webhook_id: webhookId })
      expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'WEBHOOK_NOT_FOUND' })
      expect(rejection.violations).toEqual([expect.objectContaining({ field: 'webhook_id' })])
    }
  })
})

describe.each(app.clients())('a malformed id over $wire', (client) => {
  const places = OPERATIONS.flatMap((method) => idFieldsOf(method).map((field) => ({ method, field })))

  it.each(overWire(client, places))('is rejected with its field: $method.name.$field', async ({ method, field }) => {
    const others = Object.fromEntries(idFieldsOf(method).map((name) => [name, newId()]))
    const { teamToken, environmentId } = own

    const rejection = await client.callError(
      method,
      { ...namesInPath(method), ...others, [field]: 'no-uuid' },
      { token: teamToken, environment: environmentId },
    )

    expect(rejection).toMatchObject({
      code: 'INVALID_ARGUMENT',
      ...(client.wire === 'grpc' ? {} : { httpStatus: 400 }),
    })
    expect(rejection.violations).toContainEqual(expect.objectContaining({ field, rule: 'string.uuid' }))
  })
})

describe.each(app.clients({ token: own.environmentToken }))('an id in capitals over $wire', (client) => {
  it('is the same id', async () => {
    const { method } = WebhookService
    const webhook = await client.ok(method.getWebhook, { id: own.webhookId })
    expect(await client.ok(method.getWebhook, { id: own.webhookId.toUpperCase() })).toEqual(webhook)
  })
})
