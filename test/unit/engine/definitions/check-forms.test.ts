import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkConfig, checkOverride, compilePlan } from '../../../../src/engine/definitions/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'

const SOURCE = { resource: 'channels', query: { q: '{{args.search}}' } }
const OPTIONS = { value: 'id', label: 'profile.name', subText: 'topic' }
const CHANNEL = { name: 'channel', type: 'single_select', data_source: SOURCE, options: OPTIONS }

function definition(...fields: Json[]): JsonObject {
  return {
    base_url: 'https://api.example.com',
    credentials: {
      format: 'api_key',
      config: {
        fields: [{ name: 'api_key', type: 'password' }, { name: 'pin_label', type: 'password' }, { name: 'site' }],
      },
    },
    resources: {
      workspaces: { list: { path: '/workspaces' } },
      channels: { list: { path: '/channels' }, create: { method: 'post', path: '/channels' } },
      search: { run: { method: 'post', path: '/search', read_only: true } },
    },
    actions: {
      lookup: { type: 'request', config: { path: '/lookup' } },
      post_connect_user_form: { type: 'form', config: { fields } },
    },
  }
}

const AT = 'config.actions.post_connect_user_form.config.fields'
const lines = (config: JsonObject) =>
  checkConfig(config, 'integration', 'config').map(({ field, rule }) => `${field.replace(AT, 'fields')} ${rule}`)

describe('a form without findings', () => {
  test.each<[string, Json[]]>([
    ['offers the records of a list', [CHANNEL]],
    ['offers those of a method that only reads', [{ ...CHANNEL, data_source: { resource: 'search', method: 'run' } }]],
    ['offers the result of an action', [{ ...CHANNEL, data_source: { resource: '_', method: 'lookup' } }]],
    [
      'reads fields before it, credential fields and variables',
      [
        { name: 'workspace', type: 'single_select', data_source: { resource: 'workspaces' }, options: { value: 'id' } },
        { ...CHANNEL, data_source: { resource: 'channels', query: { w: '{{workspace}}', s: '{{site}}' } } },
        { name: 'users', type: 'multi_select', data_source: SOURCE, options: OPTIONS, depends_on: ['channel'] },
      ],
    ],
    ['mixes them with plain fields', [{ name: 'note', type: 'textarea' }, CHANNEL]],
  ])('%s', (_what, fields) => {
    expect(lines(definition(...fields))).toEqual([])
  })

  test('is the one that the documentation shows', async () => {
    const page = await readFile(join(import.meta.dirname, '../../../../src/platform/accounts/README.md'), 'utf8')
    const [, example = ''] = /```json\n("post_connect_user_form": [\s\S]*?)```/.exec(page) ?? []
    const resources = { workspaces: { list: { path: '/w' } }, projects: { list: { path: '/p' } } }
    expect(lines({ base_url: 'https://api.example.com', resources, actions: JSON.parse(`{${example}}`) })).toEqual([])
  })

  test('names the label of a choice as a key of the context', () => {
    const { resources = {}, ...config } = definition(CHANNEL)
    const read = { path: '/x', query: { name: '{{channel_label}}', id: '{{channel}}', no: '{{channel_labels}}' } }
    expect(lines({ ...config, resources: { ...(resources as JsonObject), x: { get: read } } })).toEqual([
      'config.resources.x.get.query.no placeholder.unknown_root',
    ])
  })
})

describe('a finding names the field', () => {
  const after = { name: 'after', type: 'single_select', data_source: SOURCE, options: OPTIONS }
  test.each<[string, Json[], string[]]>([
    [
      'an unknown resource',
      [{ ...CHANNEL, data_source: { resource: 'chanels' } }],
      ['fields[0].data_source.resource form.unknown_resource'],
    ],
    [
      'a resource that every object has',
      [{ ...CHANNEL, data_source: { resource: 'constructor' } }],
      ['fields[0].data_source.resource form.unknown_resource'],
    ],
    [
      'an unknown method',
      [{ ...CHANNEL, data_source: { resource: 'channels', method: 'get' } }],
      ['fields[0].data_source.method form.unknown_method'],
    ],
    [
      'a method that writes',
      [{ ...CHANNEL, data_source: { resource: 'channels', method: 'create' } }],
      ['fields[0].data_source.method form.writes'],
    ],
    [
      'a reserved action',
      [{ ...CHANNEL, data_source: { resource: '_', method: 'post_connect_user_form' } }],
      ['fields[0].data_source.method form.unknown_method'],
    ],
    [
      'another kind of source',
      [{ ...CHANNEL, data_source: { ...SOURCE, type: 'unified' } }],
      ['fields[0].data_source.type enum'],
    ],
    ['a missing field', [{ ...CHANNEL, depends_on: ['x'] }], ['fields[0].depends_on[0] form.depends_on']],
    ['itself', [{ ...CHANNEL, depends_on: ['channel'] }], ['fields[0].depends_on[0] form.depends_on']],
    [
      'a cycle, by the edge that leads forward',
      [
        { ...CHANNEL, depends_on: ['after'] },
        { ...after, depends_on: ['channel'] },
      ],
      ['fields[0].depends_on[0] form.depends_on'],
    ],
    [
      'a cycle of placeholders',
      [
        { ...CHANNEL, data_source: { ...SOURCE, query: { a: '{{after}}' } } },
        { ...after, depends_on: ['channel'] },
      ],
      ['fields[0].data_source form.depends_on'],
    ],
    ['a source without paths', [{ ...CHANNEL, options: [{ value: 'x' }] }], ['fields[0] field.options']],
    ['paths without a source', [{ name: 'a', type: 'single_select', options: OPTIONS }], ['fields[0] field.options']],
    ['a path that is none', [{ ...CHANNEL, options: { value: 'a..b' } }], ['fields[0].options.value path']],
    ['a source of a text', [{ name: 'a', data_source: SOURCE }], ['fields[0] field.data_source']],
    ['a default that cannot be checked', [{ ...CHANNEL, default: 'C1' }], ['fields[0] field.default']],
    ['a key without a source', [{ name: 'a', empty_text: 'x' }], ['fields[0] field.data_source']],
    ['a secret', [{ name: 'a', type: 'password' }], ['fields[0].type form.secret']],
    ['a secret file', [{ name: 'a', type: 'file' }], ['fields[0].type form.secret']],
    ['the name of a credential', [{ name: 'api_key' }], ['fields[0].name form.credential_name']],
    ['a label with the name of a credential', [{ ...CHANNEL, name: 'pin' }], ['fields[0].name form.credential_name']],
    ['the key of a label', [CHANNEL, { name: 'channel_label' }], ['fields[0].name form.label_key']],
    [
      'an unknown placeholder',
      [{ ...CHANNEL, data_source: { ...SOURCE, query: { a: '{{wrkspace}}' } } }],
      ['fields[0].data_source.query.a placeholder.unknown_root'],
    ],
  ])('%s', (_what, fields, expected) => {
    expect(lines(definition(...fields))).toEqual(expected)
  })

  test('the name of a credential that a format has by default', () => {
    const config = { ...definition({ name: 'api_key' }), credentials: { format: 'api_key' } }
    expect(lines(config)).toEqual(['fields[0].name form.credential_name'])
  })

  test('a name of an earlier step', () => {
    const step = { type: 'form', config: { fields: [{ name: 'a' }] } }
    const config = { ...definition(), actions: { post_connect_user_form: { steps: [step, step] } } }
    expect(lines(config)).toEqual([
      'config.actions.post_connect_user_form.steps[1].config.fields[0].name field.duplicate',
    ])
  })

  test.each<[string, (index: number) => JsonObject, string]>([
    ['more fields than a form may have', (index) => ({ name: `f${index}` }), 'max'],
    [
      'patterns that together repeat too much',
      (index) => ({ name: `f${index}`, pattern: 'x.{1,99}' }),
      'field.pattern',
    ],
  ])('%s, in all steps', (_what, fieldOf, rule) => {
    const stepOf = (from: number, count: number) => {
      const fields = Array.from({ length: count }, (_item, index) => fieldOf(from + index))
      return { type: 'form', config: { fields } }
    }
    const withSteps = (...steps: Json[]) => ({ ...definition(), actions: { post_connect_user_form: { steps } } })
    const count = rule === 'max' ? 60 : 5
    expect(lines(withSteps(stepOf(0, count)))).toEqual([])
    expect(lines(withSteps(stepOf(0, count), stepOf(count, count)))).toEqual([
      `config.actions.post_connect_user_form ${rule}`,
    ])
  })

  test('of an override that changes the source', () => {
    const override = {
      actions: { post_connect_user_form: { config: { fields: [{ ...CHANNEL, depends_on: ['x'] }] } } },
    }
    expect(checkOverride(definition(CHANNEL), override, 'override').map(({ rule }) => rule)).toEqual([
      'form.depends_on',
    ])
  })
})

test('the plan of a form has its fields with sources, and what they depend on', () => {
  const workspace = {
    name: 'workspace',
    type: 'single_select',
    data_source: { resource: 'workspaces' },
    options: { value: 'id' },
  }
  const query = { workspace: '{{workspace}}', q: '{{args.search}}' }
  const channel = { ...CHANNEL, data_source: { ...SOURCE, query }, disabled_text: 'Choose a workspace first' }
  const step = compilePlan(definition({ name: 'note' }, workspace, channel)).actions.get('post_connect_user_form')
    ?.steps[0]
  expect(step).toMatchObject({
    type: 'form',
    fields: [
      { name: 'note', type: 'text', dependsOn: [], remote: undefined },
      { name: 'workspace', dependsOn: [], remote: { resource: 'workspaces', method: 'list', isSearchable: false } },
      {
        name: 'channel',
        dependsOn: ['workspace'],
        remote: { label: ['profile', 'name'], isSearchable: true, disabledText: 'Choose a workspace first' },
      },
    ],
  })
})
