import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { EVENTUALLY } from '../support/eventually.ts'
import { TIME } from '../support/matchers.ts'
import { firstTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const { getIntegratedAccount: get, recreateWebhookSubscriptions: recreate } = IntegratedAccountService.method

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
app.startWorker()

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

const SUBSCRIPTION = {
  create: { type: 'request', config: { method: 'POST', path: '/hooks', body: { url: '{{connection.webhook_url}}' } } },
  delete: { type: 'request', config: { method: 'DELETE', path: '/hooks/{{subscription.id}}' } },
  id: 'result.id',
  expires: '"30d"',
  secret: 'hex32',
}
const DEFINITION = { ...callDefinition(upstream.url), webhook: { subscription: SUBSCRIPTION } }

const created = (id: string) => ({ request: 'POST /hooks', answer: { status: 201, json: { id } } })

describe.each(inTurn(app.clients()))('webhook subscriptions over $wire', (client) => {
  it('are created by a worker, shown with the account, and created anew on request', async () => {
    upstream.script(created('first'))
    const { accountId: id } = await connectAccount(app, firstTenant(app), DEFINITION)
    const shown = async (externalId: string) => {
      await vi.waitFor(
        async () =>
          expect(await client.ok(get, { id })).toMatchObject({
            webhook_subscriptions: [{ external_id: externalId, status: 'active' }],
          }),
        EVENTUALLY,
      )
    }
    await shown('first')
    const { webhook_subscriptions: subscriptions } = await client.ok(get, { id })
    expect(subscriptions).toEqual([
      { event: '', status: 'active', external_id: 'first', expires_at: TIME, next_attempt_at: TIME, last_error: '' },
    ])
    upstream.script(created('second'), { request: 'DELETE /hooks/first', answer: { status: 204 } })
    expect(await client.ok(recreate, { id })).toMatchObject({ id, webhook_subscriptions: [{ external_id: 'first' }] })
    await shown('second')
    await vi.waitFor(() => expect(upstream.requests.map(({ method }) => method)).toContain('DELETE'), EVENTUALLY)
  })

  it('are an error for an account that has none, and for an unknown one', async () => {
    const { accountId: id } = await connectAccount(app, firstTenant(app), callDefinition(upstream.url))
    expect(await client.callError(recreate, { id })).toMatchObject({ reason: 'METHOD_NOT_DEFINED' })
    expect(await client.callError(recreate, { id: newId() })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    expect(await client.callError(recreate, { id: 'no-uuid' })).toMatchObject({ reason: 'INVALID_FIELD' })
  })
})
