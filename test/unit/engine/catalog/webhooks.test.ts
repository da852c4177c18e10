import { createHash } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { SHIPPED_NAMES } from '../../../../src/engine/catalog/index.ts'
import { compilePlan, resolveConfig } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { responseFormat, type WebhookRequest } from '../../../../src/engine/formats/index.ts'
import { isJsonObject, type Json } from '../../../../src/foundation/json/index.ts'
import { dedupeKeyOf } from '../../../../src/webhooks/inbound/dedupe-key.ts'
import { readItems, readLookupValues } from '../../../../src/webhooks/inbound/mapping.ts'
import { parseRequest } from '../../../../src/webhooks/inbound/parsed-request.ts'
import { shipped } from './shipped.ts'
import { followWebhook, type GoldenWebhooks, readGoldenWebhooks } from './webhook-journey.ts'

const HOOK = 'https://hooks.example.com/integrated-account-webhook/one'
const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

/** Every definition with a webhook block, compiled. */
const definitions = SHIPPED_NAMES.flatMap((name) => {
  const plan = compilePlan(resolveConfig(shipped(name).config, {}).config)
  return plan.webhook === undefined ? [] : [{ name, plan, webhook: plan.webhook }]
})

function goldenOf(name: string): GoldenWebhooks {
  return readGoldenWebhooks(name) ?? { now: '', account: {}, deliveries: [] }
}

const ORGANIZATION = '00Dx0000000ABCDEAA'
/** What HubSpot sent before version 3: a hash of the secret and the body. */
const hubspotV1 = createHash('sha256')
  .update(`golden-webhook-secret${goldenOf('hubspot').deliveries[0]?.body ?? ''}`)
  .digest('hex')

test.each([
  ['salesforce', 'the id of the organization alone', { query: '' }],
  [
    'hubspot',
    'a signature without a time',
    { headers: { 'content-type': 'application/json', 'x-hubspot-signature': hubspotV1 } },
  ],
])('%s: %s does not verify a delivery', async (name, _what, changes) => {
  const golden = goldenOf(name)
  const [delivery] = golden.deliveries
  const webhook = definitions.find((definition) => definition.name === name)?.webhook
  if (delivery === undefined || webhook === undefined) throw new Error(`${name} has no delivery`)
  const account = { environmentVariables: { ...golden.account.environmentVariables, ORGANIZATION_ID: ORGANIZATION } }
  const forged = { ...delivery, ...changes }
  expect((await followWebhook(evaluator, webhook, { ...golden, account }, forged)).signature).not.toBe('valid')
})

test('most definitions receive webhooks', () => {
  expect(definitions.length).toBeGreaterThanOrEqual(60)
})

test.each(definitions)('$name names the id of a delivery, or says that every request is news', ({ webhook }) => {
  expect(webhook.dedupe === undefined || webhook.dedupe.keys.length > 0).toBe(true)
})

/** Where the list is of which a provider sends several entries at once. */
const BATCHES = [
  ['hubspot', ''],
  ['klaviyo', 'data'],
  ['linkedin', 'notifications'],
  ['microsoft-graph', 'value'],
  ['microsoft-teams', 'value'],
  ['outlook', 'value'],
  ['quickbooks', ''],
  ['sendgrid', ''],
] as const

test.each(BATCHES)('%s: two batches with the same first entry are two deliveries', (name, path) => {
  const text = goldenOf(name).deliveries.findLast(({ body }) => body !== '')?.body ?? ''
  const body = JSON.parse(text)
  const longer = path === '' ? [...body, { id: 'another' }] : { ...body, [path]: [...body[path], { id: 'another' }] }
  const key = dedupeKeyOfBody(name, text)
  expect(key === undefined || key !== dedupeKeyOfBody(name, JSON.stringify(longer))).toBe(true)
})

test('salesforce: one notification is recognised by its id, several by all of the message', () => {
  const [{ body = '' } = {}] = goldenOf('salesforce').deliveries
  const [notification = ''] = /<Notification>.*<\/Notification>/s.exec(body) ?? []
  const batch = (id: string) => body.replace(notification, `${notification}<Notification><Id>${id}</Id></Notification>`)
  expect(dedupeKeyOfBody('salesforce', body)).toMatch(/^04l/)
  expect(dedupeKeyOfBody('salesforce', batch('one'))).not.toBe(dedupeKeyOfBody('salesforce', batch('another')))
})

/** The dedupe key of a request without headers that tell it apart. */
function dedupeKeyOfBody(name: string, text: string): string | undefined {
  const body = Buffer.from(text)
  const payload = responseFormat(text.startsWith('<') ? 'xml' : 'json').decode(body)
  return dedupeKeyOfRequest(name, { method: 'POST', url: HOOK, headers: {}, query: {}, body, payload })
}

function dedupeKeyOfRequest(name: string, request: WebhookRequest): string | undefined {
  const webhook = definitions.find((definition) => definition.name === name)?.webhook
  if (webhook === undefined) throw new Error(`${name} has no webhook`)
  const scope = { account: { context: {}, credentials: {}, environmentVariables: {} }, call: {} }
  return dedupeKeyOf(webhook, { request, received: request, scope })?.key
}

test.each([
  ['shopify', { 'x-shopify-webhook-id': 'id' }, 'id'],
  ['shopify', { 'x-shopify-event-id': 'id', 'x-shopify-topic': 't', 'x-shopify-shop-domain': 's' }, '["id","t","s"]'],
  ['woocommerce', { 'x-wc-webhook-delivery-id': 'id' }, 'id'],
  ['github', { 'x-github-delivery': 'id' }, 'id'],
  ['clerk', { 'svix-id': 'id' }, 'id'],
])('%s has the id of a delivery in %o', (name, headers, key) => {
  const request = { method: 'POST', url: HOOK, headers, query: {}, body: Buffer.from('{}'), payload: {} }
  expect(dedupeKeyOfRequest(name, request)).toBe(key)
})

test('sendgrid: an e-mail that comes in, as multipart, is one item', async () => {
  const webhook = definitions.find(({ name }) => name === 'sendgrid')?.webhook
  if (webhook?.events === undefined) throw new Error('sendgrid has no webhook')
  const body = Buffer.from('--b\r\nContent-Disposition: form-data; name="to"\r\n\r\na@example.com\r\n--b--\r\n')
  const headers = [['content-type', 'multipart/form-data; boundary=b']] as const
  const request = { method: 'POST', path: '/hook', query: '', headers, body }
  const parsed = await parseRequest(request, HOOK, { owner: 'test' }, webhook)
  const item = await evaluator.evaluate(webhook.events, { body: parsed.body }, { owner: 'test' })
  expect(item).toEqual({ event: 'unmapped', resource: 'inbound_email', data: { to: 'a@example.com' } })
})

describe.each(definitions)('webhooks of $name', ({ name, plan, webhook }) => {
  const golden = goldenOf(name)
  const results = golden.deliveries.map(({ result }) => result)

  test('show a delivery that is accepted and mapped', () => {
    expect(results.some(({ signature, events }) => signature === 'valid' && events !== undefined)).toBe(true)
  })

  test('show an answer, where the definition has a handshake', () => {
    const hasAnswer = results.some(({ answer, type }) => answer !== undefined || type === 'meta')
    expect(hasAnswer || webhook.handshake === undefined).toBe(true)
  })

  test.each(golden.deliveries.map((delivery) => [delivery.what, delivery] as const))('%s', async (_what, delivery) => {
    expect(await followWebhook(evaluator, webhook, golden, delivery)).toEqual(delivery.result)
  })

  test('are rejected with another secret', async () => {
    for (const delivery of golden.deliveries.filter(({ result }) => result.signature === 'valid')) {
      const forged = { ...golden, account: withOtherSecrets(golden) }
      expect((await followWebhook(evaluator, webhook, forged, delivery)).signature).not.toBe('valid')
    }
  })

  test('return items that processing can read', () => {
    for (const { events, accounts } of results) {
      expect(() => readItems(events)).not.toThrow()
      expect(() => readLookupValues(accounts, 'context_lookup')).not.toThrow()
    }
  })

  test('hand on no secret, and name resources of the definition', () => {
    for (const { events = [] } of results) {
      expect(JSON.stringify(events)).not.toContain('golden-webhook-secret')
      for (const item of [events].flat() as readonly Json[]) {
        if (!isJsonObject(item)) continue
        const isNamed = typeof item.resource === 'string' && plan.resources.has(item.resource)
        expect(isNamed || item.event === 'unmapped' || UNREAD_RESOURCES.includes(`${name} ${item.resource}`)).toBe(true)
      }
    }
  })
})

/** Records that come in webhooks alone. */
const UNREAD_RESOURCES: readonly string[] = ['sendgrid email_events']

/** The account with other keys and secrets; what is not one stays. */
function withOtherSecrets({ account }: GoldenWebhooks): GoldenWebhooks['account'] {
  const { environmentVariables = {}, credentials = {}, ...rest } = account
  return {
    ...rest,
    environmentVariables: Object.fromEntries(Object.keys(environmentVariables).map((name) => [name, 'b3RoZXI='])),
    credentials: Object.fromEntries(Object.keys(credentials).map((name) => [name, { hook_secret: 'x' }])),
    ...(rest.subscription === undefined ? {} : { subscription: { secret: 'b3RoZXI=' } }),
  }
}
