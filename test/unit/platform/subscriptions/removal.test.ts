import { describe, expect, it } from 'vitest'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { subscriptionsFixture } from './fixture.ts'

const fixture = await subscriptionsFixture()
const { tx, upstream, worker, subscribeTo, remove, removeAtThirdParty, waitingRemovals, passRemovals, failures } =
  fixture

const BLOCK: JsonObject = {
  create: { type: 'request', config: { method: 'POST', path: '/hooks' } },
  delete: {
    type: 'request',
    config: {
      method: 'DELETE',
      path: '/hooks/{{subscription.id}}',
      headers: {
        'x-url': '{{connection.webhook_url}}',
        'x-secret': '{{subscription.secret}}',
      },
    },
  },
  id: 'result.id',
  secret: 'hex32',
}

async function subscribed(hook: string, block = BLOCK, config: JsonObject = {}): Promise<string> {
  const { id } = await subscribeTo(block, config)
  upstream.script({ request: 'POST /hooks', answer: { json: { id: hook } } })
  await worker().runOnce()
  return id
}

describe('the subscriptions of a deleted account', () => {
  it('are deleted at the third party by a worker, with the credentials that are gone here; nothing of them stays', async () => {
    const id = await subscribed('a')
    const { credentials } = (await fixture.load(id)).access
    const { secret } = credentials.subscription as { secret: string }
    await remove(id)
    expect(JSON.stringify(await waitingRemovals())).not.toContain('key-canary')
    upstream.script({
      request: 'DELETE /hooks/a',
      headers: {
        authorization: 'Bearer key-canary',
        'x-secret': secret,
        'x-url': `https://patchbay.example/integrated-account-webhook/${id}`,
      },
      answer: { status: 204 },
    })
    expect(await removeAtThirdParty()).toBe(true)
    expect(await waitingRemovals()).toEqual([])
    expect(await removeAtThirdParty()).toBe(false)
  })

  it('include one that another has replaced and that could not be deleted yet', async () => {
    const id = await subscribed('new')
    await execute(tx, `update webhook_subscription set replaced_id = '"old"'`, {})
    await remove(id)
    upstream.script(
      { request: 'DELETE /hooks/new', answer: { status: 204 } },
      { request: 'DELETE /hooks/old', answer: { status: 404 } },
    )
    await removeAtThirdParty()
    expect(await waitingRemovals()).toEqual([])
  })

  it('are tried for about a day, then reported', async () => {
    failures.length = 0
    const id = await subscribed('a')
    await remove(id)
    upstream.script({ request: 'DELETE /hooks/a', answer: { status: 503 }, times: 8 })
    for (let attempt = 1; attempt <= 8; attempt++) {
      await passRemovals()
      await removeAtThirdParty()
    }
    expect(await waitingRemovals()).toEqual([])
    expect(failures).toMatchObject([{ of: 'subscription', integratedAccountId: id, cause: 'transient' }])
  })

  it('that may not be deleted are reported at once', async () => {
    failures.length = 0
    await remove(await subscribed('a'))
    upstream.script({ request: 'DELETE /hooks/a', answer: { status: 403, json: { message: 'no key-canary' } } })
    await removeAtThirdParty()
    expect(failures).toMatchObject([{ of: 'subscription', cause: 'client_refused' }])
    expect(failures[0]?.message).not.toContain('key-canary')
  })

  it('leave nothing to do where the definition cannot delete them', async () => {
    const { delete: _, ...block } = BLOCK
    const id = await subscribed('a', block)
    await remove(id)
    await removeAtThirdParty()
    expect(await waitingRemovals()).toEqual([])
  })

  it('are deleted even when the third party creates one while the account is deleted', async () => {
    const { id } = await subscribeTo(BLOCK)
    upstream.script(
      { request: 'POST /hooks', answer: { json: { id: 'late' } } },
      { request: 'DELETE /hooks/late', answer: {} },
    )
    const removed = Promise.withResolvers<void>()
    const { proxy } = fixture
    const slow: typeof proxy = {
      ...proxy,
      runAction: async (plan, access, request) => {
        const run = await proxy.runAction(plan, access, request)
        if (request.target.kind === 'subscription' && request.target.verb === 'create') {
          await remove(id)
          removed.resolve()
        }
        return run
      },
    }
    await worker({ proxy: slow }).runOnce()
    await removed.promise
    expect(upstream.requests.map(({ method }) => method)).toEqual(['POST', 'DELETE'])
  })
})
