import { afterAll, describe, expect, test } from 'vitest'
import { checkConfig, compilePlan, resolveConfig, type WebhookPlan } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { createKeySource } from '../../../../src/engine/formats/index.ts'
import { type Json, parseJson } from '../../../../src/foundation/json/index.ts'
import { HANDSHAKE_ROWS, HANDSHAKE_SECRET, type HandshakeRequest, type HandshakeRow } from './rows/handshakes.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

const environmentVariables = {
  WEBHOOK_SECRET: HANDSHAKE_SECRET,
  WEBHOOK_VERIFY_TOKEN: 'meatyhamhock',
  SNS_TOPIC_ARN: 'arn:aws:sns:eu-central-1:123456789012:orders',
}
const ADDRESS = 'https://patchbay.example/integrated-account-webhook/account-1'
const config = ({ webhook }: HandshakeRow) => ({ base_url: 'https://api.example.com', resources: {}, webhook })

function planOf(row: HandshakeRow): WebhookPlan {
  const { webhook } = compilePlan(resolveConfig(config(row), {}).config)
  if (webhook === undefined) throw new Error('no webhook')
  return webhook
}

function bodyOf({ body = '' }: HandshakeRequest): Json {
  return body === '' ? null : parseJson(body)
}

async function shake(plan: WebhookPlan, request: HandshakeRequest): Promise<Json | undefined> {
  if (plan.handshake === undefined) return undefined
  const { headers = {}, query = '', method = 'POST' } = request
  const parameters = Object.fromEntries(new URLSearchParams(query))
  return await evaluator.evaluate(plan.handshake.expression, {
    body: bodyOf(request),
    headers,
    query: parameters,
    method,
    path: '/',
    environment_variables: environmentVariables,
  })
}

async function isValid(plan: WebhookPlan, request: HandshakeRequest): Promise<boolean> {
  const { headers = {}, body = '', method = 'POST' } = request
  const now = () => new Date()
  const delivery = { method, url: ADDRESS, headers, query: {}, body: Buffer.from(body), payload: bodyOf(request) }
  const keys = createKeySource({ now, fetchKey: async () => ({ status: 404, body: new Uint8Array() }) })
  const scope = { account: { context: {}, credentials: {}, environmentVariables }, call: {} }
  const result = await plan.verify?.(delivery, scope, { now, keys })
  return result?.kind === 'valid'
}

describe.each(Object.entries(HANDSHAKE_ROWS))('%s', (_name, row) => {
  test('is a definition without problems', () => {
    expect(checkConfig(config(row), 'integration', 'config')).toEqual([])
  })

  test.each(row.requests.map((request) => [request.what, request] as const))('%s', async (_what, request) => {
    const plan = planOf(row)
    const handshake = await shake(plan, request)
    if (request.result === undefined) expect(handshake).toBeUndefined()
    else {
      const { answer, update_context, visit } = request.result
      expect(handshake).toEqual({
        type: 'verify',
        ...(answer === undefined ? {} : { verification_response: answer }),
        ...(visit === undefined ? {} : { verification_request: { url: visit } }),
        ...(update_context === undefined ? {} : { update_context }),
      })
      if (visit !== undefined) expect(plan.isVerificationHost(new URL(visit).hostname)).toBe(true)
    }
    if (request.isValid !== undefined) expect(await isValid(plan, request)).toBe(request.isValid)
  })
})

test('a handshake that visits addresses keeps to the hosts of the provider', () => {
  const plan = planOf(HANDSHAKE_ROWS['An address is visited']!)
  const hosts = [
    'sns.eu-central-1.amazonaws.com',
    'sns.a.b.amazonaws.com',
    'sns.amazonaws.com.evil.example',
    'localhost',
  ]
  expect(hosts.filter((host) => plan.isVerificationHost(host))).toEqual(['sns.eu-central-1.amazonaws.com'])
})
