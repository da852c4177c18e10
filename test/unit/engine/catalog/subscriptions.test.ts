import { afterAll, describe, expect, it } from 'vitest'
import { SHIPPED_NAMES } from '../../../../src/engine/catalog/index.ts'
import { checkConfig, compilePlan, type SubscriptionVerb } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import type { EgressRequest, EgressResponse } from '../../../../src/foundation/egress/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  endSubscription,
  isSubscriptionWanted,
  requestSubscription,
} from '../../../../src/platform/subscriptions/request.ts'
import { dataPath, formatData } from '../../../support/data-files.ts'
import { shipped } from './shipped.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const HOOK = 'https://patchbay.example/integrated-account-webhook/account-1'
const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

/** An account that asks for webhooks, and what the third party answers to each request for it. */
interface SubscribedAccount {
  readonly context: JsonObject
  readonly create: readonly Json[]
  readonly renew?: Json
  readonly find?: Json
  /** What it then calls the subscription, and when it ends (seconds after `NOW`, where the response says so). */
  readonly id: Json
  readonly expires?: string
  readonly secret?: string
}

const DAYS_30 = '2026-01-31T00:00:00.000Z'
const OF_A_FOLDER = { context: { webhooks: '4711' }, create: [{ id: '77' }], renew: { id: '77' }, id: '77' }

const ACCOUNTS: Readonly<Record<string, SubscribedAccount>> = {
  airtable: {
    context: { webhooks: true, base: 'app1' },
    create: [{ id: 'ach1', macSecretBase64: 'c2VjcmV0', expirationTime: '2026-01-08T00:00:00.000Z' }],
    renew: { expirationTime: '2026-01-15T00:00:00.000Z' },
    id: { base: 'app1', webhook: 'ach1' },
    expires: '2026-01-08T00:00:00.000Z',
    secret: 'c2VjcmV0',
  },
  asana: { context: { webhooks: '12' }, create: [{ data: { gid: '99' } }], renew: { data: { gid: '99' } }, id: '99' },
  box: OF_A_FOLDER,
  calendly: {
    context: {
      webhooks: true,
      organization_uri: 'https://api.calendly.com/organizations/O',
      user_uri: 'https://api.calendly.com/users/U',
    },
    create: [{ resource: { uri: 'https://api.calendly.com/webhook_subscriptions/W' } }],
    renew: { resource: { uri: 'https://api.calendly.com/webhook_subscriptions/W', state: 'active' } },
    id: 'W',
  },
  github: {
    context: { webhooks: { owner: 'acme', repo: 'shop' } },
    create: [{ id: 5 }],
    renew: { id: 5, active: true },
    id: { owner: 'acme', repo: 'shop', hook: 5 },
  },
  gitlab: { context: { webhooks: 31 }, create: [{ id: 5 }], renew: { id: 5 }, id: { project: 31, hook: 5 } },
  'google-calendar': {
    context: { webhooks: true },
    create: [{ kind: 'api#channel', id: 'attempt-1', resourceId: 'R', expiration: '1769817600000' }],
    id: { channel: 'attempt-1', resource: 'R' },
    expires: DAYS_30,
  },
  'google-drive': {
    context: { webhooks: true },
    create: [{ startPageToken: '17' }, { id: 'attempt-1', resourceId: 'R', expiration: '1769817600000' }],
    id: { channel: 'attempt-1', resource: 'R' },
    expires: DAYS_30,
  },
  jira: {
    context: { webhooks: 'project = SHOP', api_url: 'https://acme.atlassian.net' },
    create: [{ webhookRegistrationResult: [{ createdWebhookId: 1000 }] }],
    renew: { expirationDate: '2026-03-01T00:00:00.000+0000' },
    id: 1000,
    expires: DAYS_30,
  },
  'microsoft-graph': {
    context: { webhooks: ['me/messages'] },
    create: [{ id: 'S', expirationDateTime: '2026-01-31T00:00:00.0000000Z' }],
    renew: { id: 'S', expirationDateTime: '2026-02-03T22:00:00Z' },
    id: 'S',
    expires: DAYS_30,
  },
  pipedrive: {
    context: { webhooks: true, api_domain: 'https://acme.pipedrive.com' },
    create: [{ data: { id: 3 } }],
    id: 3,
  },
  shopify: {
    context: { webhooks: ['orders/create'], shop: 'acme' },
    create: [{ webhook: { id: 901 } }],
    renew: { webhook: { id: 901 } },
    find: { webhooks: [{ id: 901 }] },
    id: 901,
  },
  typeform: {
    context: { webhooks: 'F1' },
    create: [{ id: 'w', form_id: 'F1', tag: 'patchbay' }],
    renew: { id: 'w', form_id: 'F1' },
    id: 'F1',
  },
  zendesk: {
    context: { webhooks: true, subdomain: 'acme' },
    create: [{ webhook: { id: '01H' } }, { signing_secret: { algorithm: 'SHA256', secret: 'theirs' } }],
    renew: { webhook: { id: '01H' } },
    id: '01H',
    secret: 'theirs',
  },
}

const NAMES = SHIPPED_NAMES.filter((name) => planOf(name).webhookSubscription !== undefined)

function planOf(name: string) {
  return compilePlan(shipped(name).config)
}

/** Requests of a definition, with these answers. */
function scripted(name: string, answers: readonly Json[]) {
  const plan = planOf(name)
  const subscription = plan.webhookSubscription
  if (subscription === undefined) throw new Error(`${name} orders no webhooks`)
  const sent: EgressRequest[] = []
  const send = async (request: EgressRequest): Promise<EgressResponse> => {
    const json = answers[sent.push(request) - 1] ?? {}
    const headers = { 'content-type': 'application/json' }
    return {
      status: 200,
      headers,
      body: Buffer.from(JSON.stringify(json)),
      url: request.url,
    } as unknown as EgressResponse
  }
  const clock = { now: () => NOW, monotonicMs: () => 0, sleep: async () => {} }
  const http = { send, stream: () => Promise.reject(new Error('subscriptions do not stream')) }
  const proxy = createProxy({ http, evaluator, clock, random: () => 0.5, nonce: () => 'n0nce' })
  const context = ACCOUNTS[name]?.context ?? {}
  const access = {
    id: 'account-1',
    isSandbox: false,
    context,
    credentials: { oauth: { token: { access_token: 't0ken' } }, subscription: { secret: 's3cret' } },
    environmentVariables: {},
    connection: { webhook_url: HOOK },
  }
  const resolved = { plan, access, account: {}, integrationName: name, token: undefined } as never
  const wanted = subscription.keys.find((key) => Array.isArray(context.webhooks) && context.webhooks.includes(key))
  const target = {
    resolved,
    plan: subscription,
    event: wanted ?? '',
    id: null as Json,
    attemptId: 'attempt-1',
    signal: AbortSignal.timeout(60_000),
  }
  return { deps: { proxy, evaluator }, target, sent, subscription }
}

async function ask(name: string, verb: Exclude<SubscriptionVerb, 'delete'>, answers: readonly Json[], id: Json) {
  const { deps, target, sent } = scripted(name, answers)
  return { answer: await requestSubscription(deps, { ...target, id }, verb, () => NOW), sent: sent.map(shown) }
}

/** Without headers that every request has; times that depend on the clock of the sandbox are masked. */
function shown({ method, url, body }: EgressRequest): JsonObject {
  const text = body === undefined || body === null ? '' : Buffer.from(body as Uint8Array).toString()
  const masked = text.replace(/"20\d\d-[^"]*Z"/g, '"<time>"').replace(/"1[789]\d{11}"/g, '"<milliseconds>"')
  return { method, url, ...(masked === '' ? {} : { body: JSON.parse(masked) as Json }) }
}

describe('the definitions that order webhooks', () => {
  it('have an account here, and no others', () => {
    expect(NAMES).toEqual(Object.keys(ACCOUNTS).sort())
  })

  describe.each(NAMES)('%s', (name) => {
    const account = ACCOUNTS[name] as SubscribedAccount
    const { id } = account

    it('is free of findings', () => {
      expect(checkConfig(shipped(name).config, 'integration', 'config')).toEqual([])
    })

    it('orders them for accounts whose context asks for them alone', async () => {
      const { deps, target } = scripted(name, [])
      expect(await isSubscriptionWanted(deps, target)).toBe(true)
      const { access } = target.resolved as { access: { context: JsonObject } }
      const { webhooks: _, ...context } = access.context
      const plain = { ...(target.resolved as object), access: { ...access, context } } as never
      expect(await isSubscriptionWanted(deps, { ...target, resolved: plain })).toBe(false)
    })

    it('sends what its golden file shows, and reads id, end and secret from the responses', async () => {
      const created = await ask(name, 'create', account.create, null)
      expect(created.answer).toMatchObject({
        kind: 'ok',
        id,
        expiresAt: account.expires === undefined ? undefined : new Date(account.expires),
        secret: account.secret,
      })
      const requests: Record<string, Json> = { create: created.sent }
      const { deps, target, sent, subscription } = scripted(name, [{}])
      if (subscription.actions.renew !== undefined) {
        const renewed = await ask(name, 'renew', [account.renew ?? {}], id)
        expect(renewed.answer).toMatchObject({ kind: 'ok', id })
        if (account.expires !== undefined) expect(renewed.answer).toMatchObject({ expiresAt: expect.any(Date) })
        requests.renew = renewed.sent
      }
      if (subscription.actions.find !== undefined) {
        const found = await ask(name, 'find', [account.find ?? {}], null)
        expect(found.answer).toMatchObject({ kind: 'ok', id })
        expect((await ask(name, 'find', [{ webhooks: [] }], null)).answer).toBeUndefined()
        requests.find = found.sent
      }
      expect(await endSubscription(deps, { ...target, id })).toBeUndefined()
      requests.delete = sent.map(shown)
      await expect(formatData(JSON.stringify(requests))).toMatchFileSnapshot(
        dataPath(`catalog/subscriptions/${name}.json`),
      )
    })
  })
})
