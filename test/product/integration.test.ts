import { describe, expect, it } from 'vitest'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import { EXAMPLE_CONFIG, freshName, seedTenant } from '../support/seeded-tenant.ts'

const {
  createIntegration: create,
  getIntegration: get,
  listIntegrations: list,
  updateIntegration: update,
  deleteIntegration: remove,
  checkIntegration: check,
} = IntegrationService.method

const app = await startTestApp()
const clients = app.clients({ token: app.first.teamToken })

const BROKEN: JsonObject = {
  base_url: 7,
  lable: 'typo',
  resources: { issues: { list: { method: 'fetch', path: '/issues' } } },
  authorization: { format: 'beer', config: {} },
}
const BROKEN_AT = ['authorization.format', 'base_url', 'lable', 'resources.issues.list.method']

const make = (client: Client, fields: JsonObject = {}) =>
  client.ok(create, { name: freshName('integration'), config: EXAMPLE_CONFIG, ...fields })

describe.each(inTurn(clients))('creating an integration over $wire', (client) => {
  it('answers with every field of the specification, and the same reads back on every wire and with either token', async () => {
    const name = freshName('github_v3')
    const integration = await client.ok(create, {
      name,
      category: 'code',
      is_beta: true,
      sharing: 'allow',
      config: EXAMPLE_CONFIG,
    })

    expect(integration).toEqual({
      id: UUID,
      name,
      category: 'code',
      is_beta: true,
      config: EXAMPLE_CONFIG,
      team_id: app.first.teamId,
      sharing: 'allow',
      created_at: TIME,
      updated_at: integration.created_at,
      installed_environment: [],
      team: expect.objectContaining({ id: app.first.teamId, name: 'operator' }),
      etag: '"v1"',
    })
    for (const other of clients)
      for (const token of [app.first.teamToken, app.first.environmentToken])
        expect(await other.ok(get, { id: integration.id }, { token })).toEqual(integration)
  })

  it('is shared with nobody unless asked to', async () => {
    expect(await make(client)).toMatchObject({ category: '', is_beta: false, sharing: 'deny' })
  })

  it('keeps secrets out of every answer', async () => {
    const oauth2 = {
      config: {
        client: { id: 'public', secret: 'planted-secret' },
        auth: { tokenHost: 'https://auth.example.com', tokenPath: '/token' },
      },
    }
    const integration = await make(client, { config: { ...EXAMPLE_CONFIG, credentials: { oauth2 } } })
    const answers = [integration, await client.ok(get, { id: integration.id }), await client.ok(list, { view: 'full' })]

    for (const answer of answers) expect(JSON.stringify(answer)).not.toContain('planted-secret')
    expect(JSON.stringify(integration.config)).toContain('"secret":"***"')
  })
})

describe.each(inTurn(clients))('a name over $wire', (client) => {
  it('that the team has is rejected with its holder', async () => {
    const { id, name } = await make(client)

    expect(await client.callError(create, { name: name ?? '', config: EXAMPLE_CONFIG })).toMatchObject({
      code: 'ALREADY_EXISTS',
      reason: 'NAME_TAKEN',
      resource: { type: 'integration', id },
      httpStatus: statusOver(client, 409),
    })
    const other = await make(client)
    expect(await client.callError(update, { id: other.id, name: name ?? '' })).toMatchObject({ reason: 'NAME_TAKEN' })
    expect(await client.ok(get, { id: other.id })).toEqual(other)
  })

  it.each(['', 'With Spaces', 'UPPER', 'ümlaut', 'x'.repeat(129)])('that is none is rejected: "%s"', async (name) => {
    const { violations } = await client.callError(create, { name, config: EXAMPLE_CONFIG })
    expect(violations).toEqual([expect.objectContaining({ field: 'name', rule: 'string.pattern' })])
  })
})

describe.each(inTurn(clients))('a definition that breaks the vocabulary over $wire', (client) => {
  it('is rejected with every finding at its JSON path, and nothing is stored', async () => {
    const name = freshName('broken')
    const rejection = await client.callError(create, { name, config: BROKEN })

    expect(rejection).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'DEFINITION_INVALID',
      httpStatus: statusOver(client, 400),
    })
    expect(rejection.violations.map(({ field }) => field).toSorted()).toEqual(BROKEN_AT.map((at) => `config.${at}`))
    await client.ok(create, { name, config: EXAMPLE_CONFIG })
  })

  it('is rejected when a patch leads there, and nothing changes', async () => {
    const before = await make(client)
    const rejection = await client.callError(update, { id: before.id, etag: before.etag, config: { base_url: 7 } })

    expect(rejection).toMatchObject({ reason: 'DEFINITION_INVALID' })
    expect(rejection.violations).toEqual([expect.objectContaining({ field: 'config.base_url' })])
    expect(await client.ok(get, { id: before.id })).toEqual(before)
  })

  it('must be there at all', async () => {
    const { violations } = await client.callError(create, { name: freshName('empty') })
    expect(violations).toEqual([expect.objectContaining({ field: 'config', rule: 'required' })])
  })
})

describe.each(inTurn(clients))('checking a definition over $wire', (client) => {
  it('tells every finding, and that a good one is good', async () => {
    const { valid, findings } = await client.ok(check, { config: BROKEN })
    const found = findings as unknown as readonly { path: string; rule: string; message: string }[]

    expect(valid).toBe(false)
    expect(found.map(({ path }) => path).toSorted()).toEqual(BROKEN_AT)
    expect(found.find(({ path }) => path === 'lable')?.message).toContain('label')
    expect(await client.ok(check, { config: EXAMPLE_CONFIG })).toEqual({
      valid: true,
      findings: [],
      warnings: [expect.objectContaining({ path: 'credentials.api_key', rule: 'account.unverified' })],
      redirect_uri: `${app.url}/connect/callback`,
    })
  })

  it('knows what only an override may hold', async () => {
    const config = { tags: ['crm'], environment_variables: { A: 1 } }
    expect(await client.ok(check, { config, kind: 'override' })).toEqual({
      valid: true,
      findings: [],
      warnings: [],
      redirect_uri: `${app.url}/connect/callback`,
    })
    expect(await client.ok(check, { config })).toMatchObject({ valid: false })
  })

  it('warns of what is accepted but may not be meant', async () => {
    expect(await client.ok(check, { config: { ...EXAMPLE_CONFIG, webhook: {} } })).toMatchObject({
      valid: true,
      warnings: [
        { path: 'webhook.signature_verification', rule: 'webhook.unsigned' },
        { path: 'webhook.dedupe', rule: 'webhook.dedupe' },
        { path: 'credentials.api_key', rule: 'account.unverified' },
      ],
    })
  })

  it('works with an environment token', async () => {
    await client.ok(check, { config: {} }, { token: app.first.environmentToken })
  })
})

describe.each(inTurn(clients))('changing an integration over $wire', (client) => {
  it('merges the config: objects merge, lists and scalars replace, null removes', async () => {
    const before = await make(client)

    const after = await client.ok(update, {
      id: before.id,
      etag: before.etag,
      config: { label: 'New', headers: { accept: null, 'x-new': '1' } },
    })

    expect(after).toEqual({
      ...before,
      config: { ...EXAMPLE_CONFIG, label: 'New', headers: { 'x-new': '1' } },
      updated_at: TIME,
      etag: '"v2"',
    })
  })

  it('needs the etag for the config, and for nothing else', async () => {
    const { id } = await make(client)

    expect(await client.callError(update, { id, config: { label: 'x' } })).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'ETAG_REQUIRED',
      httpStatus: statusOver(client, 400),
    })
    expect(await client.ok(update, { id, category: 'crm', is_beta: true, sharing: 'ask' })).toMatchObject({
      category: 'crm',
      is_beta: true,
      sharing: 'ask',
    })
  })
})

describe.each(inTurn(clients))('deleting an integration over $wire', (client) => {
  it('that is installed is rejected, and with force takes its installations along', async () => {
    const { integrationId: id } = await seedTenant(app, app.first)

    expect(await client.callError(remove, { id })).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'RESOURCE_IN_USE',
      resource: { type: 'integration', id },
      httpStatus: statusOver(client, 400),
    })
    expect(await client.ok(remove, { id, force: true })).toEqual({})
    expect(await client.callError(get, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})
