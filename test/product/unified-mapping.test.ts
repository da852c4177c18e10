import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { EnvironmentService } from '../../gen/patchbay/v1/environment_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { TeamService } from '../../gen/patchbay/v1/team_service_pb.ts'
import { UnifiedMappingService } from '../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { UnifiedModelService } from '../../gen/patchbay/v1/unified_model_service_pb.ts'
import { UnifiedService } from '../../gen/patchbay/v1/unified_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import { execute, jsonb, query } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import {
  createApiEnvironment,
  createApiTenant,
  EXAMPLE_CONFIG,
  firstTenant,
  freshName,
} from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { LOCAL_UPSTREAM } from './calls.ts'
import { connectMapped, contact } from './unified.ts'

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
const tenant = firstTenant(app)
const { accountId, integrationName } = await connectMapped(app, tenant, upstream.url)
const { method } = UnifiedMappingService
const client = app.client('rest')
const team = app.client('rest', { token: tenant.teamToken })

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

const CONTACTS = { model: 'crm', resource: 'contacts' }
/** A layer that maps one more field of the provider. */
const NICK = { response: { fields: { title: 'nick' } } }

/** An integration of the team. */
async function ownIntegration(): Promise<string> {
  const name = freshName('name')
  await team.ok(IntegrationService.method.createIntegration, { name, config: EXAMPLE_CONFIG })
  return name
}

function describeContacts(account = accountId) {
  return client.ok(UnifiedModelService.method.describeUnifiedModel, {
    model: 'crm',
    integrated_account_id: account,
    resource: 'contacts',
  })
}

async function methodNamed(name: string): Promise<JsonObject> {
  const [resource] = (await describeContacts()).resources as readonly { readonly methods: readonly JsonObject[] }[]
  return resource!.methods.find((each) => each.name === name)!
}

/** The title of a record that is read through the mapping. */
async function titleRead(account = accountId): Promise<unknown> {
  upstream.script({ request: 'GET /contacts/1', answer: { json: contact(1, { nick: 'Countess' }) } })
  const request = { ...CONTACTS, integrated_account_id: account, method: 'get', id: '1' }
  const { result } = await client.ok(UnifiedService.method.call, request)
  return (result as JsonObject).title
}

describe('the layers of a mapping', () => {
  it('merge leaf by leaf, account over environment over base, and a change is seen by the next call', async () => {
    expect(await titleRead()).toBeNull()
    const base = await team.ok(method.createUnifiedMapping, {
      ...CONTACTS,
      scope: 'base',
      integration_name: integrationName,
      config: NICK,
    })
    expect(await titleRead()).toBe('Countess')
    const own = await client.ok(method.createUnifiedMapping, {
      ...CONTACTS,
      integrated_account_id: accountId,
      method: 'get',
      config: { response: { fields: { title: "'Dr ' & nick" } } },
    })
    expect(own).toMatchObject({ scope: 'account', integration_name: integrationName })
    expect(await titleRead()).toBe('Dr Countess')
    expect((await methodNamed('get')).layers).toMatchObject({
      'response.fields.title': 'account',
      'response.fields.first_name': 'environment',
    })
    expect((await methodNamed('list')).layers).toMatchObject({ 'response.fields.title': 'base' })

    await client.ok(method.updateUnifiedMapping, {
      id: own.id,
      config: { response: { fields: { title: null } } },
      replace_config: true,
    })
    expect(await titleRead()).toBeNull()
    await client.ok(method.deleteUnifiedMapping, { id: own.id })
    expect(await titleRead()).toBe('Countess')
    await team.ok(method.deleteUnifiedMapping, { id: base.id })
    expect(await titleRead()).toBeNull()
  })

  it('of one account leave other accounts alone', async () => {
    const { id } = await client.ok(method.createUnifiedMapping, {
      ...CONTACTS,
      integrated_account_id: accountId,
      config: NICK,
    })
    const other = await connectMapped(app, tenant, upstream.url)
    expect([await titleRead(), await titleRead(other.accountId)]).toEqual(['Countess', null])
    await client.ok(method.deleteUnifiedMapping, { id })
  })
})

it('the description tells fields, methods, filters, order, references and the layer of every leaf', async () => {
  const description = await describeContacts()
  expect(description).toMatchObject({ model: 'crm', label: 'CRM', integration_name: integrationName })
  const [contacts] = description.resources as readonly JsonObject[]
  expect(contacts).toMatchObject({
    name: 'contacts',
    mapped_fields: expect.arrayContaining(['first_name', 'emails', 'owner']),
    unmapped_fields: expect.arrayContaining(['department']),
  })
  expect((contacts!.schema as { properties: JsonObject }).properties).toHaveProperty('first_name')
  expect(await methodNamed('list')).toMatchObject({
    target_resource: 'contacts',
    target_methods: ['list'],
    filters: [
      { field: 'updated_at', operators: ['gt', 'gte'] },
      { field: 'lifecycle_stage', operators: ['eq', 'in'] },
    ],
    sort_fields: ['updated_at'],
    expand_fields: ['owner'],
    custom_fields_mode: 'rest',
    layers: { 'response.fields.id': 'environment', method: 'environment' },
  })
})

it('the description tells which filters and fields the integration requires', async () => {
  const required = { filters: { lifecycle_stage: { required: true } }, request: { required: ['emails'] } }
  const ids: string[] = []
  for (const name of ['list', 'create', 'update', 'merge']) {
    const config = name === 'list' ? { filters: required.filters } : { request: required.request }
    const request = { ...CONTACTS, integrated_account_id: accountId, method: name, config }
    ids.push(String((await client.ok(method.createUnifiedMapping, request)).id))
  }
  expect((await methodNamed('list')).filters).toEqual([
    { field: 'updated_at', operators: ['gt', 'gte'], is_required: false },
    { field: 'lifecycle_stage', operators: ['eq', 'in'], is_required: true },
  ])
  const needed = ['create', 'update', 'merge'].map(async (name) => (await methodNamed(name)).required_fields)
  expect(await Promise.all(needed)).toEqual([['emails'], ['emails'], []])
  for (const id of ids) await client.ok(method.deleteUnifiedMapping, { id })
})

describe('the custom fields of the description', () => {
  const fieldsOf = async (account: string) => {
    const request = { model: 'crm', integrated_account_id: account, resource: 'contacts', include_custom_fields: true }
    const { resources } = await client.ok(UnifiedModelService.method.describeUnifiedModel, request)
    const [{ custom_fields: fields, custom_fields_error: error }] = resources as unknown as [JsonObject]
    return [fields ?? [], error ?? '']
  }

  it('are read from the third party where its definition lists them, those of the account alone', async () => {
    const account = await connectMapped(
      app,
      tenant,
      upstream.url,
      {},
      {
        properties: { list: { path: '/fields', response_path: 'data', pagination: null } },
      },
    )
    const tier = { name: 'tier', label: 'Tier', type: 'string', custom: true }
    upstream.script({
      request: 'GET /fields',
      answer: { json: { data: [tier, { name: 'email', label: 'Email', type: 'string', custom: false }] } },
    })
    expect(await fieldsOf(account.accountId)).toEqual([[{ name: 'tier', label: 'Tier', type: 'string' }], ''])
    upstream.script({
      request: 'GET /fields',
      answer: { status: 403, json: { fault: { status: 403, text: 'not yours' } } },
    })
    expect(await fieldsOf(account.accountId)).toEqual([[], 'not yours'])
  })

  it('are none where it lists none, and nothing is sent', async () => {
    expect(await fieldsOf(accountId)).toEqual([[], ''])
  })
})

it.each<[string, JsonObject, string, string]>([
  ['an unknown setting', { respons: {} }, 'config.respons', 'unknown_field'],
  [
    'an expression that does not parse',
    { response: { fields: { title: 'nick &' } } },
    'config.response.fields.title',
    'expression.syntax',
  ],
  ['a method that the definition lacks', { method: 'lst' }, 'config.method', 'method.unknown'],
  [
    'a value that the schema lacks',
    { enums: { lifecycle_stage: { map: { X: 'boss' } } } },
    'config.enums.lifecycle_stage.map.X',
    'enum',
  ],
  [
    'a constant of another type',
    { response: { fields: { emails: 1 } } },
    'config.response.fields.emails',
    'field.type',
  ],
])('a mapping with %s is rejected with its field, and nothing is stored', async (_, config, field, rule) => {
  const request = { ...CONTACTS, integrated_account_id: accountId, method: 'list', config }
  const error = await client.callError(method.createUnifiedMapping, request)
  expect(error).toMatchObject({ reason: 'DEFINITION_INVALID', httpStatus: 400 })
  expect(error.violations).toContainEqual(expect.objectContaining({ field, rule }))
  const { unified_mappings: stored = [] } = await client.ok(method.listUnifiedMappings, {
    integrated_account_id: accountId,
  })
  expect(stored).toEqual([])
  const check = await client.ok(method.checkUnifiedMapping, request)
  expect(check.valid ?? false).toBe(false)
  const path = field.replace(/^config\./, '')
  expect(check.findings).toContainEqual(expect.objectContaining({ path, rule, severity: 'error' }))
})

it('a check tells warnings and hints of what could be stored', async () => {
  const config = { response: { fields: { title: 'Tier__c' } }, filters: { title: { ops: ['eq'] } } }
  const base = { ...CONTACTS, scope: 'base', integration_name: integrationName, method: 'list' }
  const check = await team.ok(method.checkUnifiedMapping, {
    ...base,
    config: {
      resource: 'contacts',
      method: 'list',
      response: { fields: { id: 'id', ...config.response.fields } },
      filters: config.filters,
    },
  })
  expect(check.valid).toBe(true)
  expect(check.findings).toEqual([
    expect.objectContaining({ path: 'response.fields.title', rule: 'custom_fields.hard_coded', severity: 'warning' }),
    expect.objectContaining({ path: 'filters.title', rule: 'filter.unused', severity: 'warning' }),
  ])
})

it('a creation or change tells what its check found, once', async () => {
  const place = { ...CONTACTS, scope: 'base', integration_name: integrationName, method: 'lists' }
  const fields = { id: 'id', title: 'Tier__c' }
  const created = await team.ok(method.createUnifiedMapping, {
    ...place,
    config: { resource: 'contacts', method: 'list', response: { fields } },
  })
  const hint = expect.objectContaining({ path: 'method', rule: 'method.not_in_model', severity: 'hint' })
  const hardCoded = { path: 'config.response.fields.title', rule: 'custom_fields.hard_coded', severity: 'warning' }
  expect(created.warnings).toEqual([hint, expect.objectContaining(hardCoded)])
  const id = String(created.id)
  expect((await team.ok(method.getUnifiedMapping, { id })).warnings).toEqual([])
  const changed = await team.ok(method.updateUnifiedMapping, {
    id,
    config: { response: { fields: { title: 'tier' } }, filters: { title: { ops: ['eq'] } } },
  })
  expect(changed.warnings).toEqual([
    hint,
    expect.objectContaining({ path: 'config.filters.title', rule: 'filter.unused', severity: 'warning' }),
  ])
  await team.ok(method.deleteUnifiedMapping, { id })
})

it.each<[string, JsonObject, JsonObject]>([
  [
    'what all methods share where no method is mapped',
    { integration_name: 'trello' },
    { path: '', rule: 'target.missing', severity: 'warning' },
  ],
  [
    'a method that the model does not have',
    { method: 'lst', config: { resource: 'contacts', method: 'list', response: { fields: { id: 'id' } } } },
    {
      path: 'method',
      rule: 'method.not_in_model',
      severity: 'hint',
      message: expect.stringMatching(/did you mean list/),
    },
  ],
  [
    'an integration that is not there',
    { integration_name: 'hubspt' },
    { path: 'integration_name', rule: 'integration.unknown', message: expect.stringMatching(/did you mean hubspot/) },
  ],
])('a check tells %s', async (_, fields, finding) => {
  const request = { ...CONTACTS, integration_name: integrationName, config: NICK, ...fields }
  const { findings } = await client.ok(method.checkUnifiedMapping, request)
  expect(findings).toContainEqual(expect.objectContaining(finding))
})

it.each<[string, JsonObject, string, string]>([
  ['an unknown model', { model: 'crn' }, 'DEFINITION_INVALID', 'model'],
  ['an unknown resource', { resource: 'contact' }, 'DEFINITION_INVALID', 'resource'],
  ['an unknown integration', { integration_name: 'hubspt' }, 'DEFINITION_INVALID', 'integration_name'],
  [
    'an unknown integration in the base',
    { integration_name: 'hubspt', scope: 'base' },
    'DEFINITION_INVALID',
    'integration_name',
  ],
  [
    'an account outside its scope',
    { scope: 'environment', integrated_account_id: newId() },
    'INVALID_FIELD',
    'integrated_account_id',
  ],
  ['no account in its scope', { scope: 'account' }, 'INVALID_FIELD', 'integrated_account_id'],
  ['neither account nor integration', { integration_name: undefined as never }, 'INVALID_FIELD', 'integration_name'],
  ['a method that is no name', { method: 'List' }, 'INVALID_FIELD', 'method'],
])('a mapping of %s is rejected with its field', async (_, fields, reason, field) => {
  const { integration_name = undefined, ...rest } = {
    ...CONTACTS,
    integration_name: 'hubspot',
    config: {},
    ...fields,
  }
  const request = { ...rest, ...(integration_name === undefined ? {} : { integration_name }) } as JsonObject
  const error = await team.callError(method.createUnifiedMapping, request, { environment: tenant.environmentId })
  expect([error.reason, error.violations?.map((each) => each.field)]).toEqual([reason, [field]])
})

it('a mapping without a target of a method that the model lacks is rejected with the method that it is near', async () => {
  const request = { ...CONTACTS, integration_name: 'hubspot', method: 'lst', config: NICK }
  const { violations = [] } = await client.callError(method.createUnifiedMapping, request)
  expect(violations.map(({ field }) => field)).toEqual(['method', 'config'])
  expect(violations[0]?.description).toMatch(/did you mean list/)
})

describe('a place', () => {
  it('has one mapping of a method', async () => {
    const request = { ...CONTACTS, integration_name: await ownIntegration(), config: {} }
    const { id } = await client.ok(method.createUnifiedMapping, request)
    expect(await client.callError(method.createUnifiedMapping, request)).toMatchObject({
      reason: 'NAME_TAKEN',
      resource: { type: 'unified_mapping', id },
    })
    await client.ok(method.createUnifiedMapping, { ...request, resource: 'accounts' })
  })

  it('is found by the filters of the list', async () => {
    const name = await ownIntegration()
    const make = (fields: JsonObject) =>
      team.ok(
        method.createUnifiedMapping,
        { ...CONTACTS, integration_name: name, config: {}, ...fields },
        {
          environment: tenant.environmentId,
        },
      )
    const made = [await make({}), await make({ resource: 'leads' }), await make({ scope: 'base' })]
    const ids = made.map(({ id }) => id)
    const found = async (filter: JsonObject) => {
      const { unified_mappings = [] } = await client.ok(method.listUnifiedMappings, {
        integration_name: name,
        ...filter,
      })
      return (unified_mappings as readonly JsonObject[]).map(({ id }) => ids.indexOf(String(id)))
    }
    expect(await found({})).toEqual([2, 1, 0])
    expect(await found({ scope: 'base' })).toEqual([2])
    expect(await found({ scope: 'environment' })).toEqual([1, 0])
    expect(await found({ scope: 'account' })).toEqual([])
    expect(await found({ resource: 'leads' })).toEqual([1])
    expect(await found({ model: 'hris' })).toEqual([])
    expect(await found({ method: '*' })).toEqual([2, 1, 0])
  })
})

it('the mappings of a model for an integration have 1 Mi characters together', async () => {
  const config = { response: { fields: { title: `'${'x'.repeat(500)}'` } } }
  const own = { ...CONTACTS, integration_name: 'airtable', config }
  const { id } = await client.ok(method.createUnifiedMapping, own)
  await execute(
    app.database.pool,
    `insert into unified_mapping (id, team_id, environment_id, model, resource, integration_name, method, config)
     select gen_random_uuid(), :teamId, :environmentId, 'crm', 'contacts', :name, 'm' || n, :config::jsonb
     from generate_series(1, 20) n`,
    { ...tenant, name: own.integration_name, config: jsonb({ error: 'x'.repeat(52_380) }) },
  )
  const more = { ...own, resource: 'leads' }
  expect(await client.callError(method.createUnifiedMapping, more)).toMatchObject({ reason: 'LIMIT_REACHED' })
  await client.ok(method.createUnifiedMapping, { ...more, integration_name: 'asana' })
  await client.ok(method.updateUnifiedMapping, { id, config })
})

describe.each(inTurn(app.clients()))('a push over $wire', (wire) => {
  const { pushUnifiedMappings: push, listUnifiedMappings: list } = method
  const stored = async (integration_name: string) => (await wire.ok(list, { integration_name })).unified_mappings

  it('answers for each mapping, stores those without errors, and with validate_only the same and nothing', async () => {
    const integration_name = await ownIntegration()
    const place = { model: 'crm', resource: 'contacts', integration_name }
    const mappings = [
      { ...place, method: 'list', config: { method: 'list' } },
      { ...place, method: 'get', config: { method: 'gte' } },
      { ...place, config: { resource: 'issues', response: { fields: { id: 'id' } } } },
    ]
    const dry = await wire.ok(push, { mappings, validate_only: true })
    expect(await stored(integration_name)).toEqual([])
    expect(await wire.ok(push, { mappings })).toEqual(dry)
    expect(dry.mappings).toMatchObject([
      { ...place, method: '*', state: 'created' },
      { ...place, method: 'list', state: 'created' },
      { ...place, method: 'get', state: 'failed', findings: [{ path: 'config.method', severity: 'error' }] },
    ])
    expect(await stored(integration_name)).toHaveLength(2)
    const again = await wire.ok(push, { mappings: [{ ...place, method: 'list', config: { method: 'list' } }] })
    expect(again.mappings).toMatchObject([
      { method: 'list', state: 'unchanged', findings: [] },
      { method: '*', state: 'kept' },
    ])
  })

  it.each<[string, JsonObject, string]>([
    ['the same mapping twice', { mappings: [CONTACTS, CONTACTS].map(withIntegration) }, 'mappings[1]'],
    ['no integration', { mappings: [{ ...CONTACTS, config: {} }] }, 'mappings[0].integration_name'],
    [
      'an account beside another scope',
      { scope: 'base', integrated_account_id: accountId, mappings: [CONTACTS].map(withIntegration) },
      'integrated_account_id',
    ],
  ])('of %s is rejected, naming the field', async (_, request, field) => {
    const { reason, violations } = await wire.callError(push, request)
    expect([reason, violations.map((each) => each.field)]).toEqual(['INVALID_FIELD', [field]])
  })
})

function withIntegration(place: JsonObject): JsonObject {
  return { ...place, integration_name: 'acme', config: {} }
}

describe('a base mapping', () => {
  const base = { ...CONTACTS, scope: 'base', config: {} }

  it('is read by every token of the team, and written by team tokens alone', async () => {
    const { id } = await team.ok(method.createUnifiedMapping, { ...base, integration_name: await ownIntegration() })
    const sibling = await createApiEnvironment(app, tenant.teamToken)
    const other = app.client('rest', { token: sibling.environmentToken })
    expect(await other.ok(method.getUnifiedMapping, { id })).toMatchObject({ scope: 'base' })
    for (const [operation, request] of [
      [method.createUnifiedMapping, { ...base, integration_name: 'x' }],
      [method.updateUnifiedMapping, { id, config: {} }],
      [method.deleteUnifiedMapping, { id }],
    ] as const)
      expect(await other.callError(operation, request)).toMatchObject({
        reason: 'TEAM_TOKEN_REQUIRED',
        httpStatus: 403,
      })
  })

  it('is unknown to other teams', async () => {
    const { id } = await team.ok(method.createUnifiedMapping, { ...base, integration_name: await ownIntegration() })
    const foreign = await createApiTenant(app)
    const other = app.client('rest', { token: foreign.teamToken })
    for (const operation of [method.getUnifiedMapping, method.updateUnifiedMapping, method.deleteUnifiedMapping])
      expect(await other.callError(operation, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    const { unified_mappings: listed = [] } = await other.ok(method.listUnifiedMappings, {})
    expect(listed).toEqual([])
  })
})

it('mappings of an environment are unknown to the others of its team, and to a team token that names none', async () => {
  const { id } = await client.ok(method.createUnifiedMapping, {
    ...CONTACTS,
    integration_name: await ownIntegration(),
    config: {},
  })
  const sibling = await createApiEnvironment(app, tenant.teamToken)
  const other = app.client('rest', { token: sibling.environmentToken })
  expect(await other.callError(method.getUnifiedMapping, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  expect(await team.callError(method.getUnifiedMapping, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  expect(
    await team.callError(method.createUnifiedMapping, { ...CONTACTS, integration_name: 'x', config: {} }),
  ).toMatchObject({ reason: 'ENVIRONMENT_REQUIRED' })
})

describe('mappings end with what they are for', () => {
  const count = async (id: string) =>
    (await query(app.database.pool, 'select from unified_mapping where id = :id', { id })).length

  it('an account', async () => {
    const doomed = await connectMapped(app, tenant, upstream.url)
    const { id } = await client.ok(method.createUnifiedMapping, {
      ...CONTACTS,
      integrated_account_id: doomed.accountId,
      config: {},
    })
    app.startWorker()
    await client.ok(IntegratedAccountService.method.deleteIntegratedAccount, { id: doomed.accountId })
    await expect.poll(() => count(id)).toBe(0)
  })

  it('an environment, by force alone, and a team', async () => {
    const doomed = await createApiTenant(app)
    const admin = app.client('rest', { token: doomed.teamToken })
    const own = { ...CONTACTS, integration_name: 'hubspot', config: {} }
    const inside = await app.client('rest', { token: doomed.environmentToken }).ok(method.createUnifiedMapping, own)
    const base = await admin.ok(method.createUnifiedMapping, { ...own, scope: 'base' })
    const { deleteEnvironment } = EnvironmentService.method
    expect(await admin.callError(deleteEnvironment, { id: doomed.environmentId })).toMatchObject({
      reason: 'RESOURCE_IN_USE',
    })
    await admin.ok(deleteEnvironment, { id: doomed.environmentId, force: true })
    expect([await count(inside.id), await count(base.id)]).toEqual([0, 1])
    await team.ok(TeamService.method.deleteTeam, { id: doomed.teamId })
    expect(await count(base.id)).toBe(0)
  })
})

describe('a mapping that is tried', () => {
  const tryIt = (request: JsonObject) =>
    client.ok(method.tryUnifiedMapping, { ...CONTACTS, integrated_account_id: accountId, method: 'get', ...request })
  const fixture = (...exchanges: readonly JsonObject[]) => ({ id: '7', exchanges })

  it('with a fixture sends nothing, and shows requests, answers, result and the fields', async () => {
    const answer = { response: { body: contact(7, { nick: 'Countess' }) } }
    const call = fixture({ request: { method: 'GET', path: '/contacts/7' }, ...answer })
    const tried = await tryIt({ config: NICK, call })
    expect(tried).toMatchObject({
      outcome: 'ok',
      status: 200,
      result: { id: '7', title: 'Countess' },
      exchanges: [{ method: 'GET', url: `${upstream.url}/contacts/7`, response_status: 200 }],
    })
    const [record] = tried.records as readonly { readonly fields: readonly JsonObject[] }[]
    expect(record?.fields).toContainEqual({
      field: 'title',
      expression: 'nick',
      layer: 'account',
      lane: 'inline',
      error: '',
      value: 'Countess',
    })
    expect(upstream.requests).toEqual([])
  })

  it.each<[string, JsonObject, JsonObject]>([
    [
      'another request than the fixture has',
      fixture({ request: { method: 'GET', path: '/contacts/8' }, response: { body: contact(7) } }),
      { outcome: 'ok', exchanges: [{ differences: [expect.stringContaining('path')] }] } as never,
    ],
    [
      'an exchange that is not used',
      fixture({ response: { body: contact(7) } }, { response: {} }),
      { unused_exchanges: 1 },
    ],
    [
      'an error of the third party',
      fixture({ response: { status: 404, body: {} } }),
      { outcome: 'upstream_error', status: 404, error: { reason: 'UPSTREAM_ERROR' } },
    ],
    [
      'a value that no enum has',
      fixture({ response: { body: contact(7, { stage: 'Z' }) } }),
      { findings: [expect.objectContaining({ rule: 'enum.not_covered' })] } as never,
    ],
  ])('shows %s', async (_, call, expected) => {
    const tried = await tryIt({ call })
    expect(tried).toMatchObject(
      'findings' in expected ? { findings: expect.arrayContaining(expected.findings as never) } : expected,
    )
  })

  it('reads through a live account, with the request masked', async () => {
    upstream.script({ request: 'GET /contacts/1', answer: { json: contact(1) } })
    const tried = await tryIt({ call: { id: '1' } })
    expect(tried).toMatchObject({ outcome: 'ok', result: { id: '1' }, exchanges: [{ response_status: 200 }] })
    expect(JSON.stringify(tried)).not.toContain('k-')
  })

  it('sends a write only when it is told to', async () => {
    const write = { method: 'create', call: { body: { first_name: 'Ada' } } }
    const unsent = await tryIt(write)
    expect(unsent).toMatchObject({ outcome: 'not_sent', exchanges: [{ method: 'POST' }] })
    upstream.script({ request: 'POST /contacts', body: { first: 'Ada' }, answer: { json: contact(1) } })
    expect(await tryIt({ ...write, send_write: true })).toMatchObject({ outcome: 'ok' })
  })

  const gone = { name: 'gone', type: 'request', resource: 'contacts', method: 'delete' }

  it.each<[string, JsonObject]>([
    ['as its method', { method: 'delete' }],
    ['as a step before', { before: [{ ...gone, id: "'1'" }] }],
  ])('sends no write that the mapping of a reading method names %s, unless it is told to', async (_, config) => {
    const read = { config, call: { id: '1' } }
    expect(await tryIt(read)).toMatchObject({
      outcome: 'failed',
      error: { reason: 'INVALID_FIELD', message: expect.stringContaining('send_write') },
    })
    expect(upstream.requests).toEqual([])
    const steps = 'before' in config ? [{ request: 'GET /contacts/1', answer: { json: contact(1) } }] : []
    upstream.script({ request: 'DELETE /contacts/1', answer: { json: contact(1) } }, ...steps)
    await tryIt({ ...read, send_write: true })
  })

  it('shows what is wrong with the call', async () => {
    const tried = await tryIt({ method: 'create', call: { body: { lifecycle_stage: 'boss' } } })
    expect(tried).toMatchObject({ outcome: 'failed', error: { reason: 'INVALID_FIELD' } })
  })

  it.each<[string, JsonObject, string, string]>([
    ['a draft with an error', { config: { respons: {} } }, 'DEFINITION_INVALID', 'config.respons'],
    ['a fixture without a response', { call: fixture({}) }, 'INVALID_FIELD', 'call.exchanges[0].response'],
    ['an unknown part of a call', { call: { idd: '7' } }, 'INVALID_FIELD', 'call.idd'],
  ])('rejects %s', async (_, request, reason, field) => {
    const error = await client.callError(method.tryUnifiedMapping, {
      ...CONTACTS,
      integrated_account_id: accountId,
      method: 'get',
      ...request,
    })
    expect([error.reason, error.violations?.map((each) => each.field)]).toEqual([reason, [field]])
  })
})
