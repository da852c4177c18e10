import { describe, expect, it } from 'vitest'
import { TaskService } from '../../gen/patchbay/v1/task_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { TIME, UUID } from '../support/matchers.ts'
import { createApiEnvironment, idOf } from '../support/seeded-tenant.ts'

const { getTask: get, listTasks: list, cancelTask: cancel } = TaskService.method
const { recoverWebhookDeliveries: recover, createWebhook } = WebhookService.method
const SINCE = '2026-01-02T03:04:05.000Z'

const app = await startTestApp()
const clients = app.clients()

/** An environment with as many tasks, which no worker runs; the ids of the tasks, newest first. */
async function freshTasks(count: number) {
  const { environmentId, environmentToken: token } = await createApiEnvironment(app, app.first.teamToken)
  const client = app.client('connect', { token })
  const webhookId = await idOf(client, createWebhook, { target_url: 'https://app.example.com/hook' })
  const ids: string[] = []
  for (let made = 0; made < count; made++) ids.unshift(await idOf(client, recover, { id: webhookId, since: SINCE }))
  return { environmentId, token, webhookId, ids }
}

describe.each(inTurn(clients))('tasks over $wire', (client) => {
  it('show what was asked for and how far they are', async () => {
    const { environmentId, token, webhookId, ids } = await freshTasks(1)
    expect(await client.ok(get, { id: ids[0] ?? '' }, { token })).toEqual({
      id: UUID,
      environment_id: environmentId,
      kind: 'recover_deliveries',
      state: 'queued',
      params: { webhook_id: webhookId, since: SINCE, until: TIME },
      done_count: 0,
      result: {},
      created_at: TIME,
      updated_at: TIME,
    })
  })

  it('are listed newest first, by state, in pages bound to the query', async () => {
    const { token, ids } = await freshTasks(3)
    const idsOf = ({ tasks }: JsonObject) => (tasks as readonly JsonObject[]).map(({ id }) => id)
    const first = await client.ok(list, { page_size: 2 }, { token })
    const rest = await client.ok(list, { page_token: first.next_page_token ?? '' }, { token })
    expect([...idsOf(first), ...idsOf(rest)]).toEqual(ids)
    await client.ok(cancel, { id: ids[1] ?? '' }, { token })
    expect(idsOf(await client.ok(list, { state: 'cancelled' }, { token }))).toEqual([ids[1]])
    const moved = { state: 'queued', page_token: first.next_page_token ?? '' }
    expect((await client.callError(list, moved, { token })).reason).toBe('PAGE_TOKEN_INVALID')
    expect((await client.callError(list, { state: 'paused' }, { token })).violations).toMatchObject([
      { field: 'state' },
    ])
  })

  it('are cancelled once, and an unknown one is not found', async () => {
    const { token, ids } = await freshTasks(1)
    const cancelled = await client.ok(cancel, { id: ids[0] ?? '' }, { token })
    expect(cancelled).toMatchObject({ state: 'cancelled', finished_at: TIME })
    expect(await client.ok(cancel, { id: ids[0] ?? '' }, { token })).toEqual(cancelled)
    for (const method of [get, cancel])
      expect((await client.callError(method, { id: newId() }, { token })).reason).toBe('RESOURCE_NOT_FOUND')
  })

  it('are started once per request_id, for a range that has a moment in it', async () => {
    const { token, webhookId: id } = await freshTasks(0)
    const request = { id, since: SINCE, request_id: newId() }
    expect(await client.ok(recover, request, { token })).toEqual(await client.ok(recover, request, { token }))
    const empty = await client.callError(recover, { id, since: SINCE, until: SINCE }, { token })
    expect(empty.violations).toMatchObject([{ field: 'until' }])
    expect((await client.callError(recover, { id }, { token })).violations).toMatchObject([{ field: 'since' }])
  })
})
