import { type DescMethodUnary, getOption } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { Effect, effects as effectsOption } from '../../gen/patchbay/v1/effect_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { ToolServerService } from '../../gen/patchbay/v1/tool_server_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import { query } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { LOCAL_UPSTREAM } from '../product/calls.ts'
import { startTestApp } from '../support/app.ts'
import { auditedCalls, tokenOf } from '../support/audited-calls.ts'
import { idFieldsOf, namesInPath, OPERATIONS } from '../support/operations.ts'
import { firstTenant, seedTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
const tenant = await seedTenant(app, firstTenant(app))
const client = app.client('connect', {})
const calls = auditedCalls(app, tenant, upstream)
afterEach(() => upstream.verify())
afterAll(() => upstream[Symbol.asyncDispose]())

const isSafe = ({ idempotency }: DescMethodUnary) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
const hasEffect = (method: DescMethodUnary, effect: Effect) => getOption(method, effectsOption).includes(effect)

/** Side effects that the request log or the history of runs has. */
const RECORDED_ELSEWHERE = OPERATIONS.filter(
  (method) =>
    hasEffect(method, Effect.CALLS_DIRECTLY) ||
    method.parent.name === 'DaemonService' ||
    method.name === 'ListFormOptions',
)
const MUTATING = OPERATIONS.filter((method) => !isSafe(method) && !RECORDED_ELSEWHERE.includes(method))

interface Entry {
  readonly ownerId: string
  readonly teamId: string
  readonly actorKind: string
  readonly actorId: string
  readonly method: string
  readonly targetType: string
  readonly targetId: string | null
  readonly clientAddress: string
  readonly userAgent: string
  readonly changes: JsonObject
}

const entriesOf = async (requestId: string) =>
  await query<Entry>(app.database.pool, 'select * from audit_entry where request_id = :requestId', { requestId })

async function send(method: DescMethodUnary, request: JsonObject, token: string) {
  const requestId = newId()
  const headers = { 'x-request-id': requestId, 'user-agent': 'audit-test/1' }
  const outcome = await client.send(method, request, { token, headers })
  return { outcome, entries: await entriesOf(requestId) }
}

it('every operation that changes something is called below', () => {
  const named = calls.map(({ method }) => method.name)
  expect(MUTATING.map(({ name }) => name).filter((name) => !named.includes(name))).toEqual([])
})

describe('a successful call has exactly one entry, with who, what and where from:', () => {
  it.each(calls.map((call) => [call.method.name, call] as const))('%s', async (_, call) => {
    const { method, targetType, targetId = ({ id }) => id } = call
    const request = await call.request()
    const { outcome, entries } = await send(method, request, tokenOf(call, tenant))

    expect(outcome).toMatchObject({ ok: true })
    expect(entries).toMatchObject([
      {
        actorKind: `${call.token}_token`,
        actorId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        method: `${method.parent.name}/${method.name}`,
        targetType,
        targetId: targetId(request, outcome.ok ? outcome.json : {}),
        clientAddress: '127.0.0.1',
        userAgent: 'audit-test/1',
      },
    ])
  })
})

/** Tables of the resources whose create and update store their row by the statement of the call. */
const TABLES: Readonly<Record<string, string>> = { link_token: 'link_session' }

describe('the entry is stored in the transaction of the change:', () => {
  const stores = calls.filter(({ method }) => /^(Create|Update|Revoke|Stop)/.test(method.name))
  const withId = stores.filter(({ targetType }) => !['integration_grant', 'unified_model'].includes(targetType))
  it.each(withId.map((call) => [call.method.name, call] as const))('%s', async (_, call) => {
    const { outcome } = await send(call.method, await call.request(), tokenOf(call, tenant))
    const id = outcome.ok ? String(outcome.json.id) : ''
    const [found] = await query<{ isSame: boolean }>(
      app.database.pool,
      `select e.xmin = t.xmin as is_same from audit_entry e join ${TABLES[call.targetType] ?? call.targetType} t on t.id = :id::uuid
       where e.target_id = :text order by e.id desc limit 1`,
      { id, text: id },
    )
    expect(found).toEqual({ isSame: true })
  })
})

describe('a call that fails has none:', () => {
  const unknown = (method: DescMethodUnary) => ({
    ...namesInPath(method),
    ...Object.fromEntries(idFieldsOf(method).map((name) => [name, newId()])),
  })
  it.each(MUTATING.map((method) => [method.name, method] as const))('%s', async (_, method) => {
    const call = calls.find((each) => each.method === method)
    const { outcome, entries } = await send(method, unknown(method), call ? tokenOf(call, tenant) : tenant.teamToken)
    expect(entries).toHaveLength(outcome.ok ? 1 : 0)
  })
})

describe('a call without side effects has none:', () => {
  it.each(OPERATIONS.filter(isSafe).map((method) => [method.name, method] as const))('%s', async (_, method) => {
    const request = { ...namesInPath(method), ...Object.fromEntries(idFieldsOf(method).map((name) => [name, newId()])) }
    for (const token of [tenant.teamToken, tenant.environmentToken])
      expect((await send(method, request, token)).entries).toEqual([])
  })
})

it('no entry has a secret of the request or the answer', async () => {
  const canary = 'canary-5f0e1b7a'
  const environment = { token: tenant.environmentToken }
  const { environmentIntegrationId: environment_integration_id, integratedAccountId } = tenant
  const account = { environment_integration_id, tenant_id: 'canaries', context: { token: canary } }
  await client.ok(
    IntegratedAccountService.method.createIntegratedAccount,
    { ...account, credentials: { api_key: canary } },
    environment,
  )
  const request = { target_url: `https://app.example.com/hook?key=${canary}`, headers: { 'x-key': canary } }
  const webhook = await client.ok(WebhookService.method.createWebhook, request, environment)
  const server = { name: 'canary', integrated_account_id: integratedAccountId }
  const { token } = await client.ok(ToolServerService.method.createToolServer, server, environment)
  const rows = await query<{ text: string }>(app.database.pool, 'select e::text as text from audit_entry e')
  expect(rows.length).toBeGreaterThan(3)
  for (const secret of [canary, webhook.secret, token]) {
    expect(secret).toEqual(expect.any(String))
    expect(rows.filter(({ text }) => text.includes(String(secret)))).toEqual([])
  }
  expect(rows.some(({ text }) => text.includes('https://app.example.com/hook'))).toBe(true)
})
