import { afterAll, describe, expect, it } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import { systemClock } from '../../../../src/foundation/base/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { requestToken } from '../../../../src/platform/accounts/request-token.ts'
import { SECRET_ENCODINGS } from '../../../support/secret-encodings.ts'

const SECRET = 'kX9_tq2LmVw7Rz4Yb8Nc1Hd6Pf3Gj5Ks'
const windows = Array.from({ length: SECRET.length - 7 }, (_, at) => SECRET.slice(at, at + 8).toLowerCase())
const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

/** A proxy whose third party answers with an error of that message. */
function failingProxy(message: string) {
  const body: Json = { error: 'invalid_grant', message, error_description: message }
  const answer = {
    status: 400,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(body)),
  }
  const send = async ({ url }: { readonly url: string }) => ({ ...answer, url })
  const http = { send, stream: () => Promise.reject(new Error('not streamed')) } as never
  return { http, proxy: createProxy({ http, evaluator, clock: systemClock }) }
}

const PLAN = compilePlan({
  base_url: 'https://api.example.com',
  authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
  retry: { max_attempts: 1 },
  credentials: {
    format: 'oauth2_client_credentials',
    config: { auth: { tokenHost: 'https://auth.example.com', tokenPath: '/token' } },
  },
  resources: {
    items: {
      list: { path: '/items' },
      get: { path: '/items/1' },
      odd: { path: '/odd', error_expression: 'body.message' },
    },
  },
  actions: { probe: { type: 'request', config: { method: 'GET', path: '/probe' } } },
})
const ACCESS = {
  id: 'account',
  isSandbox: false,
  context: {},
  environmentVariables: {},
  credentials: { api_key: SECRET, client_id: 'app', client_secret: SECRET },
}

/** Every text that is kept of an error of the third party, by where it goes. */
const SINKS: Readonly<Record<string, (message: string) => Promise<unknown>>> = {
  'the error of a call': async (message) => {
    const target = { kind: 'method', resource: 'items', method: 'get' } as const
    const { message: said } = (await failingProxy(message).proxy.call(PLAN, ACCESS, {
      target,
    })) as unknown as JsonObject
    return said
  },
  'an error by an expression': async (message) => {
    const target = { kind: 'method', resource: 'items', method: 'odd' } as const
    return await failingProxy(message).proxy.call(PLAN, ACCESS, { target })
  },
  'the step of a sync': async (message) => {
    const target = { kind: 'method', resource: 'items', method: 'list' } as const
    const steps: unknown[] = []
    for await (const step of failingProxy(message).proxy.pages(PLAN, ACCESS, { target })) steps.push(step)
    return steps
  },
  'the report of a step': async (message) =>
    await failingProxy(message).proxy.runAction(PLAN, ACCESS, { target: { kind: 'action', action: 'probe' } }),
  'the error of a token request': async (message) => {
    const { http, proxy } = failingProxy(message)
    const rules = PLAN.credentials[0]?.token
    if (rules === undefined) throw new Error('no token rules')
    const resolved = { plan: PLAN, access: ACCESS, token: undefined, account: {}, integrationName: 'x' }
    return await requestToken(
      { http, evaluator, clock: systemClock, engine: proxy } as never,
      rules,
      resolved as never,
      0,
    )
  },
}

describe.each(Object.entries(SINKS))('%s', (_, keep) => {
  it('holds no 8 characters in a row of a secret that the third party repeats, wherever the text is cut', async () => {
    let kept = 0
    for (const encode of [
      SECRET_ENCODINGS['as it is'],
      SECRET_ENCODINGS['percent-encoded'],
      SECRET_ENCODINGS['in JSON'],
    ])
      for (let offset = 240; offset < 520; offset += 3) {
        const text = JSON.stringify(await keep(`${'x'.repeat(offset)}${encode?.(SECRET)} is wrong`)).toLowerCase()
        expect(
          windows.filter((window) => text.includes(window)),
          `${offset}`,
        ).toEqual([])
        kept += 1
      }
    expect(kept).toBeGreaterThan(200)
  })
})
