import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { runCommand } from '../../../../src/cli/commands/run-command.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { keepPrinted } from '../../../support/printed-output.ts'

const dir = mkdtempSync(join(tmpdir(), 'patchbay-unified-'))
afterAll(() => rmSync(dir, { recursive: true }))
const printed = keepPrinted()

function file(name: string, content: JsonObject): string {
  const path = join(dir, name)
  writeFileSync(path, JSON.stringify(content))
  return path
}

const DEFINITION = file('acme.json', {
  base_url: 'https://{{subdomain}}.acme.example/v1',
  authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
  resources: {
    people: {
      list: { path: '/people', response_path: 'data' },
      get: { path: '/people/{{id}}' },
      create: { method: 'POST', path: '/people', body_schema: { type: 'object', required: ['full_name', 'team'] } },
    },
  },
})
const FIELDS: JsonObject = { id: 'id', name: 'full_name', title: 'job.title', lifecycle_stage: 'stage' }
const SHARED: JsonObject = {
  resource: 'people',
  response: { fields: FIELDS },
  enums: { lifecycle_stage: { map: { Prospect: 'lead' } } },
}

/** A mapping of contacts, with methods over those that it has. */
function mapping(methods: JsonObject = {}, shared: JsonObject = SHARED): JsonObject {
  const contacts = { '*': shared, list: { method: 'list' }, get: { method: 'get' }, ...methods }
  return { model: 'crm', integration: 'acme', resources: { contacts } }
}

const PERSON = { id: 7, full_name: 'Ada', stage: 'Client' }
const GET = {
  method: 'get',
  id: '7',
  exchanges: [{ request: { method: 'GET', path: '/v1/people/7' }, response: { body: PERSON } }],
}
const FIXTURE = file('answers.json', { contacts: { get: GET } })

const check = (name: string, content: JsonObject, ...more: string[]) =>
  runCommand(['unified', 'check', file(name, content), '--definition', DEFINITION, ...more], {})
const tryOut = (content: JsonObject, ...more: string[]) =>
  runCommand(['unified', 'try', file('tried.json', content), '--definition', DEFINITION, ...more], {})

describe('patchbay unified check', () => {
  const fields = (more: JsonObject) => ({ response: { fields: more } })
  const expanding = (field: string, shown: JsonObject): JsonObject => ({
    [field]: { resource: 'people', method: 'get', ids: 'boss', fields: shown },
  })
  test.each<[string, JsonObject, number, string]>([
    ['nothing', mapping(), 0, 'no findings'],
    ['an unknown model', { ...mapping(), model: 'crn' }, 1, 'did you mean crm?'],
    [
      'an unknown resource',
      { ...mapping(), resources: { contact: {} } },
      1,
      'resources.contact is not a resource of the model crm, did you mean contacts?',
    ],
    ['an unknown method of the provider', mapping({ get: { method: 'gt' } }), 1, 'resources.contacts.get.method'],
    ['an unknown setting', mapping({ get: { method: 'get', reponse: {} } }), 1, 'resources.contacts.get.reponse'],
    [
      'an expression that does not parse',
      mapping({ get: { method: 'get', ...fields({ title: 'a &' }) } }),
      1,
      '[expression.syntax]',
    ],
    [
      'a field that the schema lacks',
      mapping({}, { ...SHARED, ...fields({ ...FIELDS, shoe: 'x' }) }),
      1,
      'resources.contacts.*.response.fields.shoe',
    ],
    [
      'an enum value that the schema lacks',
      mapping({}, { ...SHARED, enums: { lifecycle_stage: { map: { A: 'boss' } } } }),
      1,
      '[enum]',
    ],
    [
      'a field that neither a reference nor what it refers to has',
      mapping({}, { ...SHARED, expand: expanding('owner', { title: 'job', shoe: 'shoe' }) }),
      1,
      'expand.owner.fields.shoe is not a field of the reference, or of directory/users',
    ],
    [
      'an expanded field that is no reference',
      mapping({}, { ...SHARED, expand: expanding('title', { name: 'job' }) }),
      1,
      'expand.title is no object',
    ],
    ['a constant of another type', mapping({}, { ...SHARED, ...fields({ ...FIELDS, emails: 7 }) }), 1, '[field.type]'],
    ['an id that is no expression', mapping({}, { ...SHARED, ...fields({ ...FIELDS, id: 7 }) }), 1, '[id.type]'],
    [
      'list and get that differ',
      mapping({ list: { method: 'list', ...fields({ title: 'x' }) } }),
      0,
      'resources.contacts.list.response.fields.title is mapped differently',
    ],
    [
      'a body that reads what cannot be written',
      mapping({ create: { method: 'create', request: { body: { full_name: 'name', team: "'a'" } } } }),
      0,
      'resources.contacts.create.request.body.full_name reads name, which a call cannot write',
    ],
    [
      'a filter without effect',
      mapping({ list: { method: 'list', filters: { title: { ops: ['eq'] } } } }),
      0,
      '[filter.unused]',
    ],
    [
      'a filter that the request reads',
      mapping({
        list: { method: 'list', filters: { title: { ops: ['eq'] } }, request: { query: { q: '$filters.title.eq' } } },
      }),
      0,
      'no findings',
    ],
    [
      'a step after a list that writes',
      mapping({
        list: { method: 'list', after: [{ name: 'a', type: 'request', resource: 'people', method: 'create' }] },
      }),
      0,
      'resources.contacts.list.after[0].method people.create writes, and would run for each page',
    ],
    [
      'a step after a list that reads',
      mapping({ list: { method: 'list', after: [{ name: 'a', type: 'request', resource: 'people', method: 'get' }] } }),
      0,
      'no findings',
    ],
    [
      'a body without what is required',
      mapping({ create: { method: 'create', request: { body: { full_name: 'name' } } } }),
      0,
      'request.body.team is required by the provider',
    ],
    [
      'a custom field of one customer',
      mapping({}, { ...SHARED, ...fields({ ...FIELDS, department: 'Dept__c' }) }),
      0,
      '[custom_fields.hard_coded]',
    ],
    ['an enum of a field that is not set', mapping({}, { ...SHARED, ...fields({ id: 'id' }) }), 0, '[enum.unused]'],
    [
      'an expression that needs the sandbox',
      mapping({}, { ...SHARED, ...fields({ ...FIELDS, department: '$eval(dept)' }) }),
      0,
      '[expression.sandbox]',
    ],
  ])('reports %s', async (name, content, exitCode, text) => {
    expect(await check('checked.json', content)).toBe(exitCode)
    expect(printed.text, name).toContain(text)
  })

  test('with a fixture reports expressions without a value and values that no enum has', async () => {
    expect(await check('fixed.json', mapping(), '--fixture', FIXTURE)).toBe(0)
    expect(printed.text).toContain(
      'resources.contacts.*.response.fields.title has no value in any record of the fixture: job.title',
    )
    expect(printed.text).toContain('[enum.not_covered]')
    expect(printed.text).not.toContain('fields.name')
  })

  test('reports the problems of all resources, whichever of them have some by themselves', async () => {
    const resources = { contacts: { get: { reponse: {} } }, accounts: { get: { resource: 'people', method: 'gt' } } }
    expect(await check('several.json', { model: 'crm', integration: 'acme', resources })).toBe(1)
    expect(printed.text).toContain('resources.contacts.get.reponse')
    expect(printed.text).toContain('resources.accounts.get.method')
  })

  test('prints JSON by file', async () => {
    await check('json.json', mapping({ get: { method: 'gt' } }), '--json')
    expect(JSON.parse(printed.text)).toEqual({
      [join(dir, 'json.json')]: [
        expect.objectContaining({ path: 'resources.contacts.get.method', rule: 'method.unknown', severity: 'error' }),
      ],
    })
  })
})

describe('patchbay unified try', () => {
  test('shows request, answer, fields with their expressions, and warnings', async () => {
    expect(await tryOut(mapping(), '--fixture', FIXTURE)).toBe(0)
    expect(printed.text.split('\n')).toEqual([
      'crm/contacts get of acme: get',
      '  → GET https://sample.acme.example/v1/people/7',
      '  ← 200 {"id":7,"full_name":"Ada","stage":"Client"}',
      '  = one record',
      expect.stringMatching(/^ {4}id +7 +id$/),
      expect.stringMatching(/^ {4}name +Ada +full_name$/),
      expect.stringMatching(/^ {4}title +– +job\.title$/),
      expect.stringMatching(/^ {4}lifecycle_stage +– +stage$/),
      expect.stringMatching(/^ {4}remote_id +7$/),
      expect.stringMatching(/^ {4}custom_fields +\{\}$/),
      expect.stringMatching(/^ {4}lifecycle_stage_raw +Client$/),
      expect.stringMatching(/^ {4}not mapped: .*emails/),
      expect.stringMatching(/^ {2}warning: lifecycle_stage .*\[enum\]$/),
      '',
      '',
    ])
  })

  test.each<[string, JsonObject, number, string]>([
    ['a request that differs', { ...GET, id: '8' }, 1, 'path: the fixture has "/v1/people/7", sent is "/v1/people/8"'],
    [
      'a request too many',
      {
        ...GET,
        method: 'list',
        id: undefined as never,
        exchanges: [{ request: { method: 'GET', path: '/v1/people' }, response: { status: 500, body: {} } }],
      },
      1,
      'one more request is sent',
    ],
    [
      'an exchange that is not used',
      { ...GET, exchanges: [...GET.exchanges, { response: {} }] },
      1,
      '1 exchange of the fixture not used',
    ],
    ['a method that is not mapped', { ...GET, method: 'delete' }, 1, 'has no method delete'],
    [
      'an error of the provider',
      { ...GET, exchanges: [{ response: { status: 404, body: { message: 'gone' } } }] },
      0,
      'error of the provider, 404',
    ],
    [
      'a body that the model rejects',
      { method: 'create', body: { lifecycle_stage: 'boss' }, exchanges: [{ response: {} }] },
      1,
      'INVALID_FIELD',
    ],
  ])('shows %s, and ends with its exit code', async (name, fixture, exitCode, text) => {
    const create = { create: { method: 'create', request: { body: { full_name: 'name' } } } }
    const path = file('case.json', { contacts: { it: fixture } })
    expect(await tryOut(mapping(create), '--fixture', path), name).toBe(exitCode)
    expect(printed.text).toContain(text)
  })

  test('prints JSON with the whole result and every trace', async () => {
    await tryOut(mapping(), '--fixture', FIXTURE, '--json')
    expect(JSON.parse(printed.text)).toEqual([
      expect.objectContaining({
        resource: 'contacts',
        case: 'get',
        as_recorded: true,
        result: expect.objectContaining({ id: '7', name: 'Ada', lifecycle_stage_raw: 'Client' }),
        traces: [expect.arrayContaining([expect.objectContaining({ field: 'name', value: 'Ada', lane: 'inline' })])],
      }),
    ])
  })

  test('prints the findings of a file with errors instead of running its cases', async () => {
    const broken = mapping({ get: { method: 'gt' } })
    expect(await tryOut(broken, '--fixture', FIXTURE)).toBe(1)
    expect(printed.text).toContain('error: resources.contacts.get.method')
    expect(printed.text).not.toContain('→')
  })

  test('leaves out the cases of resources that the file does not have', async () => {
    const path = file('more.json', { contacts: { get: GET }, accounts: { get: GET } })
    expect(await tryOut(mapping(), '--fixture', path)).toBe(0)
    expect(printed.text).toContain('crm/contacts get')
    expect(printed.text).not.toContain('accounts')
  })

  test('names the shipped mappings for an unknown one', async () => {
    expect(await runCommand(['unified', 'try', 'crm/hubspt', '--fixture', FIXTURE], {})).toBe(1)
    expect(printed.text).toMatch(/did you mean crm\/hubspot\? There are crm\//)
  })

  test.each<[string, string[], number, string]>([
    ['no fixture', [], 2, 'needs --fixture'],
    ['a case that does not exist', ['--fixture', FIXTURE, '--case', 'contacts/lst'], 1, 'contacts/get'],
  ])('rejects %s', async (_, more, exitCode, text) => {
    expect(await tryOut(mapping(), ...more)).toBe(exitCode)
    expect(printed.text).toContain(text)
  })
})
