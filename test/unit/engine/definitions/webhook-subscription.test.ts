import { describe, expect, it } from 'vitest'
import { checkConfig, compilePlan } from '../../../../src/engine/definitions/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'

const REQUEST: JsonObject = {
  type: 'request',
  config: { method: 'POST', path: '/hooks', body: { url: '{{connection.webhook_url}}' } },
}
const REMOVAL: JsonObject = { type: 'request', config: { method: 'DELETE', path: '/hooks/{{subscription.id}}' } }

function configOf(subscription: JsonObject, webhook: JsonObject = {}): JsonObject {
  return {
    base_url: 'https://api.example.com',
    webhook: { ...webhook, subscription: { create: REQUEST, id: 'result.id', ...subscription } },
  }
}

function findingsOf(subscription: JsonObject, webhook?: JsonObject) {
  return checkConfig(configOf(subscription, webhook), 'integration', 'config').map(({ field, rule }) => [field, rule])
}

describe('webhook.subscription', () => {
  it('accepts a whole block', () => {
    const steps = [
      { type: 'transform', config: '$fromMillis($millis() + 1000)', name: 'end' },
      { ...REQUEST, config: { method: 'POST', path: '/hooks', body: { ends: '{{$steps.end}}' } } },
    ]
    const block = {
      create: { steps },
      renew: REQUEST,
      delete: REMOVAL,
      find: { type: 'request', config: { path: '/hooks' } },
      expires: 'result.expires_at',
      renew_before: '2h',
      secret: 'hex32',
      events: ['a', 'b'],
      one_per_event: true,
    }
    expect(findingsOf(block)).toEqual([])
    expect(compilePlan(configOf(block)).webhookSubscription).toMatchObject({
      id: 'result.id',
      expires: 'result.expires_at',
      renewBeforeMs: 7_200_000,
      secret: { kind: 'generated', encoding: 'hex' },
      keys: ['a', 'b'],
      scope: 'account',
    })
  })

  const BROKEN: readonly [name: string, subscription: JsonObject, field: string, rule: string][] = [
    ['a transform alone', { create: { type: 'transform', config: '1' } }, 'create', 'subscription.no_request'],
    ['one per event without events', { one_per_event: true }, 'one_per_event', 'subscription.no_events'],
    ['a secret for all accounts', { scope: 'installation', secret: 'hex32' }, 'secret', 'subscription.shared_secret'],
    ['a renewal after nothing', { renew_before: 'soon' }, 'renew_before', 'webhook.renew_before'],
    ['a renewal long before the end', { renew_before: '31d' }, 'renew_before', 'webhook.renew_before'],
    ['an id of an unknown root', { id: 'response.id' }, 'id', 'expression.unknown_name'],
    ['a form', { delete: { type: 'form', config: { fields: [] } } }, 'delete.type', 'actions.wrong_step'],
  ]

  it.each(BROKEN)('finds %s', (_name, subscription, field, rule) => {
    expect(findingsOf(subscription)).toContainEqual([`config.webhook.subscription.${field}`, rule])
  })

  it('finds placeholders that nothing gives a value, in the signature too', () => {
    const signature = {
      format: 'hmac',
      config: { secret: '{{subscription.secret}}', compare_with: '$header.x', parts: ['$raw_body'] },
    }
    const rule = ['config.webhook.subscription', 'subscription.no_value']
    expect(findingsOf({}, { signature_verification: signature })).toContainEqual(rule)
    expect(findingsOf({ secret: 'base64_32' }, { signature_verification: signature })).not.toContainEqual(rule)
    expect(
      findingsOf({ events: ['a'], delete: { ...REMOVAL, config: { path: '/{{subscription.event}}' } } }),
    ).toContainEqual(rule)
  })

  it('has no subscription without the block', () => {
    expect(compilePlan({ base_url: 'https://api.example.com' }).webhookSubscription).toBeUndefined()
  })
})
