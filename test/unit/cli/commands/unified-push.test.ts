import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { IntegrationService } from '../../../../gen/patchbay/v1/integration_service_pb.ts'
import { UnifiedMappingService } from '../../../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { UnifiedModelService } from '../../../../gen/patchbay/v1/unified_model_service_pb.ts'
import { runCommand } from '../../../../src/cli/commands/run-command.ts'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { startTestApp } from '../../../support/app.ts'
import { keepPrinted } from '../../../support/printed-output.ts'
import { createApiTenant, EXAMPLE_CONFIG, freshName } from '../../../support/seeded-tenant.ts'

const app = await startTestApp()
const tenant = await createApiTenant(app)
const team = app.client('rest', { token: tenant.teamToken })
const integration = freshName('integration')
await team.ok(IntegrationService.method.createIntegration, { name: integration, config: EXAMPLE_CONFIG })
const dir = mkdtempSync(join(tmpdir(), 'patchbay-push-'))
afterAll(() => rmSync(dir, { recursive: true }))

const printed = keepPrinted()

const MODEL: JsonObject = {
  label: 'Library',
  description: 'Books.',
  resources: {
    books: {
      description: 'Books.',
      methods: ['list', 'create'],
      schema: { type: 'object', properties: { title: { type: 'string', description: 'Title.' } } },
    },
  },
}
const SHARED: JsonObject = { resource: 'issues', response: { fields: { id: 'id', title: 'name' } } }

/** Writes a file and returns its path. */
function file(name: string, content: JsonObject): string {
  const path = join(dir, name)
  writeFileSync(path, JSON.stringify(content))
  return path
}

const mapping = (model: string, books: JsonObject) => file('mapping.json', { model, integration, resources: { books } })

async function push(args: readonly string[], token = tenant.teamToken): Promise<readonly string[]> {
  printed.text = ''
  const code = await runCommand(['unified', 'push', ...args], { PATCHBAY_TOKEN: token, PATCHBAY_PUBLIC_URL: app.url })
  return [`exit ${code}`, ...printed.text.split('\n').filter((line) => line !== '' && !line.startsWith('  '))]
}

async function storedOf(model: string): Promise<readonly unknown[]> {
  const page = await app
    .client('rest', { token: tenant.environmentToken })
    .ok(UnifiedMappingService.method.listUnifiedMappings, { model })
  return (page.unified_mappings as readonly JsonObject[]).map(({ scope, method, config }) => ({
    scope,
    method,
    config,
  }))
}

it('stores a model and every method of a file, and again only what has changed', async () => {
  const model = freshName('library').replaceAll('-', '_')
  const modelFile = file('model.json', MODEL)
  // In this order `list` has no resource yet.
  const path = mapping(model, { list: { method: 'list' }, '*': SHARED })
  const options = ['--model', modelFile, '--scope', 'base']
  const [model1, all, list] = [
    `model ${model}`,
    `${model}/books * of ${integration}`,
    `${model}/books list of ${integration}`,
  ]

  expect(await push([path, '--scope', 'base', '--model', modelFile, '--dry-run'])).toEqual([
    'exit 0',
    `created   ${model1}`,
    `created   ${all}`,
    `created   ${list}`,
    '3 created; dry run: nothing is stored',
  ])
  expect(await storedOf(model)).toEqual([])
  expect(await push([path, ...options])).toEqual([
    'exit 0',
    `created   ${model1}`,
    `created   ${all}`,
    `created   ${list}`,
    '3 created',
  ])
  expect(printed.text).not.toContain('target.missing')
  expect(await push([path, ...options])).toContain('3 unchanged')

  mapping(model, { '*': { ...SHARED, enums: {} } })
  expect(await push([path, ...options])).toEqual([
    'exit 0',
    `unchanged ${model1}`,
    `changed   ${all}`,
    `kept      ${list} (not in the file)`,
    '1 changed, 1 unchanged, 1 kept',
  ])
  expect(await storedOf(model)).toEqual([
    { scope: 'base', method: 'list', config: { method: 'list' } },
    { scope: 'base', method: '*', config: { ...SHARED, enums: {} } },
  ])
})

it('prints the errors of a method that is rejected, and stores the others', async () => {
  const model = freshName('library').replaceAll('-', '_')
  const path = mapping(model, { '*': SHARED, list: { method: 'list' }, create: { method: 'make' } })
  const lines = await push([path, '--model', file('model.json', MODEL), '--environment', tenant.environmentId])
  expect(lines[0]).toBe('exit 1')
  expect(lines.at(-1)).toBe('3 created, 1 failed')
  expect(printed.text).toMatch(/failed +\S+\/books create of [^\n]*config\.method/s)
  expect(await storedOf(model)).toHaveLength(2)
})

it('warns of what the stored methods come to, and not of their order', async () => {
  const model = freshName('library').replaceAll('-', '_')
  const options = ['--model', file('model.json', MODEL), '--environment', tenant.environmentId]
  await push([mapping(model, { '*': SHARED, list: { method: 'list' } }), ...options])
  expect(printed.text).not.toContain('warning')
  const alone = freshName('library').replaceAll('-', '_')
  await push([mapping(alone, { '*': SHARED }), ...options])
  expect(printed.text).toMatch(/books \* of \S+\n {2}warning: .*\[target\.missing\]/)
})

describe('a dry run finds what the push finds, with the same exit code, and stores nothing', () => {
  const LIST = { ...SHARED, method: 'list' }
  const bad = (changes: JsonObject): JsonObject => ({ '*': SHARED, list: { method: 'list', ...changes } })
  const ofAll = {
    resources: { ...(MODEL.resources as JsonObject), loans: { description: 'L', methods: ['list'], schema: 'x' } },
  }

  it.each<[string, JsonObject, JsonObject, string[], number, string]>([
    ['nothing wrong', { '*': SHARED, list: { method: 'list' } }, MODEL, [], 0, '3 created'],
    ['a warning', { '*': SHARED }, MODEL, [], 0, 'warning: config has no effect'],
    ['an unknown method of the definition', bad({ method: 'lst' }), MODEL, [], 1, 'did you mean list?'],
    ['an unknown resource of the definition', bad({ resource: 'isues' }), MODEL, [], 1, 'did you mean issues?'],
    [
      'an expression that is none',
      bad({ response: { fields: { title: 'a +' } } }),
      MODEL,
      [],
      1,
      'config.response.fields.title',
    ],
    ['an unknown setting', bad({ respnse: {} }), MODEL, [], 1, 'config.respnse'],
    ['several errors', bad({ respnse: {}, query: 1 }), MODEL, [], 1, 'failed'],
    ['a field beyond the model', bad({ response: { fields: { titel: 'name' } } }), MODEL, [], 0, '3 created'],
    [
      'a method without a target',
      { list: { response: { fields: { id: 'id' } } } },
      MODEL,
      [],
      1,
      'must have resource and method',
    ],
    ['a model without resources', { list: LIST }, { ...MODEL, resources: {} }, [], 1, 'is not a resource of the model'],
    ['a model with errors', { list: LIST }, { ...MODEL, ...ofAll }, [], 1, 'models[0].config.resources.loans'],
    ['an unknown account', { list: LIST }, MODEL, ['--account', newId()], 1, 'integrated_account'],
  ])('%s', async (_what, books, modelConfig, args, exit, said) => {
    const model = freshName('library').replaceAll('-', '_')
    const environment = ['--environment', tenant.environmentId]
    const options = [mapping(model, books), '--model', file('model.json', modelConfig), ...environment, ...args]
    const dryLines = await push([...options, '--dry-run'])
    const dry = printed.text
    expect(await storedOf(model)).toEqual([])
    const { reason } = await team.callError(UnifiedModelService.method.getUnifiedModel, { name: model })
    expect(reason).toBe('RESOURCE_NOT_FOUND')
    expect((await push(options))[0]).toBe(`exit ${exit}`)
    expect(dryLines[0]).toBe(`exit ${exit}`)
    expect(dry.replace('; dry run: nothing is stored', '')).toBe(printed.text)
    expect(dry).toContain(said)
  })

  it('a change that breaks what is stored, an unknown integration, and a token that may not', async () => {
    const model = freshName('library').replaceAll('-', '_')
    const environment = ['--environment', tenant.environmentId]
    await push([mapping(model, { list: LIST }), '--model', file('model.json', MODEL), ...environment])
    const stored = await storedOf(model)
    const unknown = { model, integration: 'no-such', resources: { books: { list: LIST } } }
    const attempts: [readonly string[], string, string][] = [
      [[mapping(model, { list: { ...LIST, method: 'lst' } }), ...environment], tenant.teamToken, 'did you mean list?'],
      [[file('unknown.json', unknown), ...environment], tenant.teamToken, 'no-such'],
      [[file('unknown.json', unknown), '--scope', 'base'], tenant.environmentToken, 'team token'],
      [['--model', file('model.json', { name: model, ...MODEL })], tenant.environmentToken, 'team token'],
    ]
    for (const [args, token, said] of attempts) {
      const dryLines = await push([...args, '--dry-run'], token)
      const dry = printed.text
      expect(await push(args, token)).toContain('exit 1')
      expect(dryLines[0]).toBe('exit 1')
      expect(dry.replace('; dry run: nothing is stored', '')).toBe(printed.text)
      expect(dry).toContain(said)
    }
    expect(await storedOf(model)).toEqual(stored)
  })
})

it('names the scope base where a team token has no environment', async () => {
  const lines = await push([mapping('crm', { list: { method: 'list' } })])
  expect(lines.join('\n')).toContain('environment')
  const { message } = await team.callError(UnifiedMappingService.method.createUnifiedMapping, {
    model: 'crm',
    resource: 'contacts',
    integration_name: integration,
    config: {},
  })
  expect(message).toContain('scope base')
})

it.each<[string, readonly string[], string]>([
  ['neither files nor a model', [], 'takes files or --model'],
  ['an unknown scope', ['F', '--scope', 'all'], '--scope must be one of base, environment, account'],
  ['an account of another scope', ['F', '--scope', 'base', '--account', tenant.environmentId], '--account ID'],
  ['the scope account alone', ['F', '--scope', 'account'], '--account ID'],
])('%s is wrong usage', async (_what, args, said) => {
  const path = mapping('crm', {})
  expect((await push(args.map((each) => (each === 'F' ? path : each)))).slice(0, 1)).toEqual(['exit 2'])
  expect(printed.text).toContain(said)
})

it('a file of another shape names what is wrong', async () => {
  expect(await push([file('flat.json', { model: 'crm', integration, resource: 'contacts' })])).toEqual([
    'exit 1',
    expect.stringContaining('must be {model, integration, resources}, without resource'),
  ])
  expect((await push([mapping('crm', { list: 'x' })]))[1]).toContain('resources.books.list must be an object')
})
