import { type DescField, type DescMethodUnary, ScalarType } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { Json, JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { JSON_PROTOCOLS } from '../support/client.ts'
import { KINDS, OPERATIONS, type ResourceKind, tokenFor } from '../support/operations.ts'
import { seedTenant } from '../support/seeded-tenant.ts'

const app = await startTestApp()
const world = await seedTenant(app, app.first)
const admin = app.client('connect', { token: world.teamToken })
const jsonClients = JSON_PROTOCOLS.map((wire) => app.client(wire, {}))

/** Operations whose whole request is the body of the REST call, so that both wires send the same JSON. */
const withBody = OPERATIONS.filter(
  ({ name }) => /^(Create|Check|Preview)/.test(name) && name !== 'CreateIntegrationGrant',
)

const asAdministrator = { token: world.teamToken, environment: world.environmentId }

async function countOf(kind: ResourceKind): Promise<number> {
  const answer = await admin.ok(kind.list, { page_size: 1000 }, { token: tokenFor(kind, world) })
  const items = answer[kind.items]
  return Array.isArray(items) ? items.length : Number.NaN
}

/** A value that no field of this kind takes. */
function misfitOf({ fieldKind, scalar }: DescField): Json {
  if (fieldKind === 'list') return 'not a list'
  if (fieldKind === 'message' || fieldKind === 'map') return [1]
  return scalar === ScalarType.STRING ? { not: 'text' } : 'neither number nor boolean'
}

describe.each(jsonClients)('a field that the contract does not know over $wire', (client) => {
  it.each(withBody)('is rejected with its name: $name', async (method) => {
    const rejection = await client.callError(method, { surprise: 1 }, asAdministrator)

    expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'INVALID_FIELD', httpStatus: 400 })
    expect(rejection.violations).toContainEqual(expect.objectContaining({ field: 'surprise', rule: 'unknown_field' }))
  })

  it('is answered with the name that was probably meant', async () => {
    const { createIntegratedAccount } = IntegratedAccountService.method
    const { violations } = await client.callError(createIntegratedAccount, { tennant_id: 'acme' }, asAdministrator)
    const [finding] = violations.filter(({ rule }) => rule === 'unknown_field')

    expect(finding?.description).toContain('tenant_id')
  })
})

describe.each(jsonClients)('values of the wrong type over $wire', (client) => {
  it.each(withBody)('are rejected all at once, each with its field: $name', async (method) => {
    const wrong = method.input.fields.filter(({ oneof }) => oneof === undefined || oneof.fields.length === 1)
    const request = Object.fromEntries(wrong.map((field) => [field.name, misfitOf(field)]))

    const { violations } = await client.callError(method, request, asAdministrator)

    expect(
      violations
        .filter(({ rule }) => rule === 'type')
        .map(({ field }) => field)
        .toSorted(),
    ).toEqual(wrong.map(({ name }) => name).toSorted())
  })
})

describe.each(jsonClients)('a refused create over $wire', (client) => {
  it.each(KINDS)('stores nothing: $noun', async (kind) => {
    const request = await kind.createRequest(world, admin)
    const before = await countOf(kind)

    await client.callError(kind.create, { ...request, surprise: 1 }, { token: tokenFor(kind, world) })
    await client.callError(kind.create, { ...request, request_id: '' }, { token: tokenFor(kind, world) })

    expect(await countOf(kind)).toBe(before)
  })
})

describe.each(jsonClients)('null over $wire', (client) => {
  /** Fields a request leaves out, as nulls. */
  function nulls(method: DescMethodUnary, request: JsonObject): JsonObject {
    return Object.fromEntries(
      method.input.fields.filter(({ name }) => !(name in request)).map(({ name }) => [name, null]),
    )
  }

  it.each(KINDS)('counts as not given: $noun', async (kind) => {
    const request = await kind.createRequest(world, admin)
    const sender = { token: tokenFor(kind, world) }
    const made = await client.ok(kind.create, { ...nulls(kind.create, request), ...request }, sender)
    const read = await client.ok(kind.get, { id: made.id }, sender)

    // A secret is shown once, by the creation.
    if (kind.update === undefined) return expect(made).toMatchObject(read)
    const { method } = kind.update
    expect(await client.ok(method, { ...nulls(method, { id: '' }), id: made.id }, sender)).toEqual(read)
  })
})

describe.each(jsonClients)('names in lower camel case over $wire', (client) => {
  it('are read like the contract spells them, and answered in its spelling', async () => {
    const { createIntegratedAccount, getIntegratedAccount } = IntegratedAccountService.method
    const request = {
      environmentIntegrationId: world.environmentIntegrationId,
      tenantId: 'camel',
      credentials: { api_key: 'k' },
      isSandbox: true,
    }
    const account = await client.ok(createIntegratedAccount, request, { token: world.environmentToken })

    expect(account).toMatchObject({ tenant_id: 'camel', is_sandbox: true })
    expect(await client.ok(getIntegratedAccount, { id: account.id }, { token: world.environmentToken })).toEqual(
      account,
    )
  })

  it('beside the same name in the contract’s spelling are rejected', async () => {
    const { createIntegratedAccount } = IntegratedAccountService.method
    const rejection = await client.callError(
      createIntegratedAccount,
      { tenant_id: 'a', tenantId: 'b' },
      asAdministrator,
    )

    expect(rejection.violations).toContainEqual(
      expect.objectContaining({ field: 'tenant_id', rule: 'duplicate_field' }),
    )
  })
})

describe.each(app.clients({ token: world.environmentToken }))('what no row can hold over $wire', (client) => {
  const { updateIntegratedAccount, getIntegratedAccount } = IntegratedAccountService.method
  const deep = (levels: number): Json => (levels === 0 ? 1 : { a: deep(levels - 1) })

  it.each([
    { what: 'NUL in a text', field: 'context.note', context: { note: 'a\u0000b' } },
    { what: 'NUL in a key', field: 'context.a\u0000b', context: { 'a\u0000b': 1 } },
    { what: 'nesting beyond 32', field: expect.stringMatching(/^context(\.a){32}/), context: { a: deep(40) } },
    {
      what: 'a key that reaches prototypes',
      field: 'context.a.__proto__',
      context: JSON.parse('{"a":{"__proto__":1}}'),
    },
  ])('is rejected with its path and changes nothing: $what', async ({ field, context }) => {
    const id = world.integratedAccountId
    const before = await client.ok(getIntegratedAccount, { id })

    const rejection = await client.callError(updateIntegratedAccount, { id, context })

    expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'INVALID_FIELD' })
    expect(rejection.violations).toEqual([expect.objectContaining({ field })])
    expect(await client.ok(getIntegratedAccount, { id })).toEqual(before)
  })
})

describe('a body that is not JSON', () => {
  it.each([
    { what: 'cut off', body: '{"name": "x"' },
    { what: 'a number too large for a double', body: '{"name": 1e400}' },
    { what: 'a list', body: '[]' },
    { what: 'a text', body: '"x"' },
  ])('is rejected: $what', async ({ body }) => {
    const response = await fetch(`${app.url}/team`, {
      method: 'POST',
      headers: { authorization: `Bearer ${world.teamToken}`, 'content-type': 'application/json' },
      body,
    })

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 400, status: 'INVALID_ARGUMENT' } })
  })
})

describe('an unknown id', () => {
  it('is not repeated by the rejection of another field', async () => {
    const { updateIntegratedAccount } = IntegratedAccountService.method
    const rejection = await admin.callError(updateIntegratedAccount, { id: newId(), tenant_id: '' }, asAdministrator)
    expect(rejection).toMatchObject({ reason: 'INVALID_FIELD', resource: undefined })
  })
})
