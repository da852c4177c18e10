import { describe, expect, it } from 'vitest'
import { UnifiedMappingService } from '../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { UnifiedModelService } from '../../gen/patchbay/v1/unified_model_service_pb.ts'
import { SHIPPED_MODEL_NAMES } from '../../src/engine/catalog/index.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { createApiTenant, freshName } from '../support/seeded-tenant.ts'

const app = await startTestApp()
const tenant = await createApiTenant(app)
const foreign = await createApiTenant(app)
const { method } = UnifiedModelService
const team = app.client('rest', { token: tenant.teamToken })

const RESOURCES: JsonObject = {
  books: {
    description: 'Books.',
    methods: ['list', 'get'],
    schema: { type: 'object', properties: { title: { type: 'string', description: 'Title.' } }, required: ['title'] },
  },
}
const LIBRARY: JsonObject = { label: 'Library', description: 'Books and readers.', resources: RESOURCES }
const modelName = () => freshName('library').replaceAll('-', '_')

async function make(config: JsonObject = LIBRARY, name = modelName()): Promise<string> {
  await team.ok(method.createUnifiedModel, { name, config })
  return name
}

describe.each(app.clients({ token: tenant.teamToken }))('a model over $wire', (client) => {
  it('is created, read, changed and deleted by its name', async () => {
    const name = modelName()
    const created = await client.ok(method.createUnifiedModel, { name, config: LIBRARY })
    expect(created).toMatchObject({ name, config: LIBRARY, document: { ...LIBRARY, name } })
    expect(await client.ok(method.getUnifiedModel, { name })).toEqual(created)

    const changed = await client.ok(method.updateUnifiedModel, {
      name,
      etag: created.etag,
      config: { label: 'Books', description: null },
    })
    expect(changed.config).toEqual({ label: 'Books', resources: RESOURCES })
    expect(await client.callError(method.updateUnifiedModel, { name, etag: created.etag, config: {} })).toMatchObject({
      reason: 'ETAG_MISMATCH',
      resource: { type: 'unified_model', id: name },
    })
    expect(await client.callError(method.deleteUnifiedModel, { name, etag: created.etag })).toMatchObject({
      reason: 'ETAG_MISMATCH',
    })
    expect(await client.ok(method.deleteUnifiedModel, { name, etag: changed.etag })).toEqual({})
    expect(await client.callError(method.getUnifiedModel, { name })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })

  it('of the name of a shipped one extends it leaf by leaf, and is as it ships when it is deleted', async () => {
    const shipped = await client.ok(method.getUnifiedModel, { name: 'crm' })
    expect(shipped).toMatchObject({ config: {}, is_shipped: true })
    const loyalty = { type: 'string', description: 'Loyalty tier.' }
    const config = { resources: { contacts: { schema: { properties: { loyalty } } } } }
    const extended = await client.ok(method.createUnifiedModel, { name: 'crm', config })

    expect(extended).toMatchObject({
      is_shipped: true,
      config,
      document: { label: (shipped.document as JsonObject).label },
    })
    const contacts = (await client.ok(method.getUnifiedModel, { name: 'crm' })).document as JsonObject
    expect(propertiesOf(contacts, 'contacts')).toEqual({
      ...propertiesOf(shipped.document as JsonObject, 'contacts'),
      loyalty,
    })
    await client.ok(method.deleteUnifiedModel, { name: 'crm' })
    expect(await client.ok(method.getUnifiedModel, { name: 'crm' })).toEqual(shipped)
  })
})

function propertiesOf(document: JsonObject, resource: string): JsonObject {
  const { [resource]: of } = document.resources as Record<string, { schema: { properties: JsonObject } }>
  return of!.schema.properties
}

it('the list has the shipped models, marked, and those of the team, by name and page by page', async () => {
  const own = await make()
  const names: string[] = []
  let page_token = ''
  do {
    const page = await team.ok(method.listUnifiedModels, { page_size: 2, page_token })
    const models = page.unified_models as readonly JsonObject[]
    for (const { name, is_shipped, etag = '' } of models) {
      expect([name, is_shipped === true, etag !== '']).toEqual([
        name,
        SHIPPED_MODEL_NAMES.includes(String(name)),
        !SHIPPED_MODEL_NAMES.includes(String(name)),
      ])
      names.push(String(name))
    }
    page_token = String(page.next_page_token ?? '')
  } while (page_token !== '')
  expect(names).toEqual([...names].sort())
  expect(names).toEqual(expect.arrayContaining([...SHIPPED_MODEL_NAMES, own]))
})

it.each<[string, JsonObject, string]>([
  ['no resources', { label: 'x' }, 'config'],
  ['a type that no schema has', withProperty({ type: 'text' }), 'config.resources.books.schema'],
  ['a reference to nothing', withProperty({ $ref: '#/$defs/none' }), 'config.resources.books.schema'],
  ['an unknown key', { ...LIBRARY, resource: {} }, 'config.resource'],
])('a model with %s is rejected with its field, and nothing is stored', async (_, config, field) => {
  const name = modelName()
  const error = await team.callError(method.createUnifiedModel, { name, config })
  expect(error).toMatchObject({ reason: 'DEFINITION_INVALID', httpStatus: 400 })
  expect(error.violations?.[0]?.field).toContain(field)
  expect(await team.callError(method.getUnifiedModel, { name })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  const check = await team.ok(method.checkUnifiedModel, { name, config })
  expect(check.valid ?? false).toBe(false)
  expect(check.findings).not.toEqual([])
})

function withProperty(title: JsonObject): JsonObject {
  const books = { ...(RESOURCES.books as JsonObject), schema: { type: 'object', properties: { title } } }
  return { ...LIBRARY, resources: { books } }
}

it('a name is taken once per team', async () => {
  const name = await make()
  expect(await team.callError(method.createUnifiedModel, { name, config: LIBRARY })).toMatchObject({
    reason: 'NAME_TAKEN',
    resource: { type: 'unified_model', id: name },
  })
  const others = app.client('rest', { token: foreign.teamToken })
  await others.ok(method.createUnifiedModel, { name, config: LIBRARY })
})

it('a creation repeated with its request_id creates one', async () => {
  const request = { name: modelName(), config: LIBRARY, request_id: newId() }
  const first = await team.ok(method.createUnifiedModel, request)
  expect(await team.ok(method.createUnifiedModel, request)).toEqual(first)
})

it('is unknown to other teams, and not written by an environment token', async () => {
  const name = await make()
  const others = app.client('rest', { token: foreign.teamToken })
  for (const [operation, request] of [
    [method.getUnifiedModel, { name }],
    [method.updateUnifiedModel, { name, config: { label: 'x' } }],
    [method.deleteUnifiedModel, { name }],
  ] as const)
    expect(await others.callError(operation, request)).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  const listed = await others.ok(method.listUnifiedModels, { page_size: 1000 })
  expect((listed.unified_models as readonly JsonObject[]).map((model) => model.name)).not.toContain(name)
  const environment = app.client('rest', { token: tenant.environmentToken })
  expect(await environment.ok(method.getUnifiedModel, { name })).toMatchObject({ name })
  expect(await environment.callError(method.deleteUnifiedModel, { name })).toMatchObject({
    reason: 'TEAM_TOKEN_REQUIRED',
  })
})

it('a model of the team with mappings is deleted by force alone, with them', async () => {
  const name = await make()
  const environment = app.client('rest', { token: tenant.environmentToken })
  const { id } = await environment.ok(UnifiedMappingService.method.createUnifiedMapping, {
    model: name,
    resource: 'books',
    integration_name: 'hubspot',
    config: {},
  })
  expect(await team.callError(method.deleteUnifiedModel, { name })).toMatchObject({ reason: 'RESOURCE_IN_USE' })
  await team.ok(method.deleteUnifiedModel, { name, force: true })
  expect(await environment.callError(UnifiedMappingService.method.getUnifiedMapping, { id })).toMatchObject({
    reason: 'RESOURCE_NOT_FOUND',
  })
})

it('a shipped model that is not extended is neither changed nor deleted', async () => {
  for (const [operation, request] of [
    [method.updateUnifiedModel, { name: 'hris', config: { label: 'x' } }],
    [method.deleteUnifiedModel, { name: 'hris' }],
  ] as const) {
    const error = await team.callError(operation, request)
    expect(error.reason).toBe('RESOURCE_NOT_FOUND')
    expect(error.message).toContain('create a model of its name to extend it')
  }
})

it('a team has 50 models at most, also when they are created at once', async () => {
  const crowded = await createApiTenant(app)
  const client = app.client('connect', { token: crowded.teamToken })
  const outcomes = await Promise.all(
    Array.from({ length: 53 }, () => client.send(method.createUnifiedModel, { name: modelName(), config: LIBRARY })),
  )
  const reasons = outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.error.reason]))
  expect(reasons).toEqual(['LIMIT_REACHED', 'LIMIT_REACHED', 'LIMIT_REACHED'])
})
