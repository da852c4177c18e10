import { createHash } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { isJsonObject, type Json } from '../../src/base/index.ts'
import { SHIPPED_NAMES } from '../../src/catalog/index.ts'
import { compilePlan, resolveConfig } from '../../src/definitions/index.ts'
import { createEvaluator } from '../../src/expressions/index.ts'
import { readItems, readLookupValues } from '../../src/inbound-webhooks/mapping.ts'
import { shipped } from './shipped.ts'
import {
  dedupeKeysOfWebhook,
  followWebhook,
  type GoldenWebhook,
  type GoldenWebhooks,
  readGoldenWebhooks,
} from './webhook-journey.ts'

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

/** A request with each part changed that is not its body: other values, without it, with more. */
function* variantsOf(request: GoldenWebhook): Generator<readonly [what: string, variant: GoldenWebhook]> {
  const { headers, query = '' } = request
  const names = Object.keys(headers)
  for (const name of names) {
    const { [name]: value = '', ...without } = headers
    yield [`without ${name}`, { ...request, headers: without }]
    for (const other of ['another', `${value}0`, '0195f1c2-0000-7000-8000-000000000001'])
      yield [`${name}: ${other}`, { ...request, headers: { ...headers, [name]: other } }]
  }
  for (const name of ['x-delivery-id', 'idempotency-key', 'x-hub-signature', 'x-request-digest', 'content-encoding'])
    if (!names.includes(name)) yield [`with ${name}`, { ...request, headers: { ...headers, [name]: 'another' } }]
  for (const type of ['text/plain', 'application/x-www-form-urlencoded'])
    yield [type, { ...request, headers: { ...headers, 'content-type': type } }]
  yield ['another method', { ...request, method: 'PUT' }]
  yield ['another parameter', { ...request, query: query === '' ? 'x=1' : `${query}&x=1` }]
  for (const name of new URLSearchParams(query).keys()) {
    const changed = new URLSearchParams(query)
    changed.set(name, 'another')
    yield [`${name} in the query`, { ...request, query: changed.toString() }]
  }
}

/** Formats that authenticate the sender and nothing of the request: who captured a request knows all that another one needs. */
const WITHOUT_CONTENT = ['basic', 'bearer', 'compare', 'jwt', 'none']

describe.each(definitions)('a captured webhook of $name', ({ name, webhook }) => {
  const golden = goldenOf(name)
  const isRecognised = (one: readonly string[], other: readonly string[]) => one.some((key) => other.includes(key))

  test('is recognised whatever was not signed of it', async () => {
    const accepted: string[] = []
    let signed = 0
    for (const delivery of golden.deliveries.filter(({ result }) => result.signature === 'valid')) {
      const keys = (await dedupeKeysOfWebhook(evaluator, webhook, golden, delivery)) ?? []
      if (!keys.some((key) => key.startsWith('signed:'))) continue
      signed += 1
      for (const [what, variant] of variantsOf(delivery)) {
        const other = await dedupeKeysOfWebhook(evaluator, webhook, golden, variant).catch(() => undefined)
        if (other !== undefined && !isRecognised(keys, other)) accepted.push(`${delivery.what}: ${what}`)
      }
    }
    expect(accepted).toEqual([])
    const texts = JSON.stringify(webhook.signature ?? { format: 'none' })
    const isContentSigned = !WITHOUT_CONTENT.some((format) => texts.includes(`"format":"${format}"`))
    if (webhook.dedupe !== undefined && isContentSigned) expect(signed).toBeGreaterThan(0)
  })
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
