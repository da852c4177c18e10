import { describe, expect, test } from 'vitest'
import { checkConfig, compilePlan } from '../../../../src/engine/definitions/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'

const findings = (config: JsonObject) => checkConfig(config, 'integration', 'config')
const lines = (config: JsonObject) => findings(config).map(({ field, rule }) => `${field} ${rule}`)

const withSteps = (...steps: Json[]): JsonObject => ({ actions: { run: { steps } } })
const login = { name: 'login', type: 'request', config: { path: '/login' } }

describe('an action without findings', () => {
  test.each<[string, JsonObject]>([
    [
      'reads earlier results by given and by numbered names',
      withSteps(
        login,
        { type: 'transform', config: '$steps.login.id & $previous.name' },
        { type: 'request', config: { path: '/{{$steps.transform_2}}', body: { id: '{{$previous}}' } } },
        { type: 'update_context', config: { id: '{{$steps.login.id}}' }, run_if: '$exists($steps.login)' },
      ),
    ],
    ['is one step', { actions: { run: { type: 'transform', config: 'args.id' } } }],
    ['is a form', { actions: { post_connect_user_form: { type: 'form', config: { fields: [{ name: 'site' }] } } } }],
    ['names no step of $steps', withSteps({ type: 'transform', config: '$keys($steps)' })],
    [
      'has two shorter names for $steps',
      withSteps(login, { type: 'transform', config: '($all := $steps; $all.login)' }),
    ],
  ])('%s', (_what, config) => {
    expect(lines(config)).toEqual([])
  })
})

describe('a finding names the step', () => {
  test.each<[string, JsonObject, string[]]>([
    ['a name taken twice', withSteps(login, login), ['config.actions.run.steps[1].name actions.duplicate_step']],
    [
      'a name that a step without one has',
      withSteps(login, { type: 'transform', config: '1' }, { ...login, name: 'transform_2' }),
      ['config.actions.run.steps[2].name actions.duplicate_step'],
    ],
    [
      'a form anywhere else',
      withSteps({ type: 'form', config: { fields: [{ name: 'site' }] } }),
      ['config.actions.run.steps[0].type actions.wrong_step'],
    ],
    [
      'anything else where a form belongs',
      { actions: { post_connect_user_form: login } },
      [
        'config.actions.post_connect_user_form.name unknown_field',
        'config.actions.post_connect_user_form.type actions.wrong_step',
      ],
    ],
    [
      'a refresh without a request',
      { actions: { refresh_token: { type: 'transform', config: '{}' } } },
      ['config.actions.refresh_token actions.wrong_step'],
    ],
    [
      'a change of the context by a renewal',
      { actions: { refresh_token: { steps: [login, { type: 'update_context', config: { a: 1 } }] } } },
      ['config.actions.refresh_token.steps[1].type actions.wrong_step'],
    ],
    [
      'a page of a step',
      withSteps({ type: 'request', config: { path: '/', pagination: { format: 'link_header', config: {} } } }),
      ['config.actions.run.steps[0].config.pagination actions.pagination'],
    ],
    [
      'results of later steps',
      withSteps({ type: 'transform', config: '$steps.login.id' }, login),
      ['config.actions.run.steps[0].config actions.unknown_step'],
    ],
    [
      'results in templates',
      withSteps(login, { type: 'request', config: { path: '/{{$steps.lgin.id}}' } }),
      ['config.actions.run.steps[1].config.path actions.unknown_step'],
    ],
    [
      'results before the first step',
      withSteps({ type: 'request', config: { path: '/{{$previous.id}}' }, run_if: '$previous' }),
      [
        'config.actions.run.steps[0].config.path actions.unknown_step',
        'config.actions.run.steps[0].run_if actions.unknown_step',
      ],
    ],
    [
      'results where an answer is judged',
      withSteps(login, { type: 'request', config: { path: '/', error_expression: '$previous.ok' } }),
      ['config.actions.run.steps[1].config.error_expression actions.result_outside'],
    ],
    [
      'results outside of actions',
      {
        error_expression: '$steps.login.ok',
        resources: { things: { get: { path: '/{{$previous.id}}' } } },
      },
      ['config.error_expression actions.result_outside', 'config.resources.things.get.path actions.result_outside'],
    ],
    [
      'a resource in the place of actions',
      { resources: { _: { get: {} } } },
      ['config.resources._ resources.reserved_name'],
    ],
    [
      'an expression that does not parse in the long form',
      withSteps({ type: 'update_context', config: { expression: 'a +' } }),
      ['config.actions.run.steps[0].config expression.syntax'],
    ],
  ])('%s', (_what, config, expected) => {
    expect(lines(config).sort()).toEqual([...expected].sort())
  })

  test('and the name that was probably meant', () => {
    const [finding] = findings(withSteps(login, { type: 'transform', config: '$steps.lgin' }))
    expect(finding?.description).toBe('reads $steps.lgin, but no step of that name runs before, did you mean login?')
  })
})

describe('a compiled action', () => {
  const compiled = (step: JsonObject) =>
    compilePlan({ base_url: 'https://a.example', ...withSteps(step) }).actions.get('run')

  test.each<[string, boolean]>([
    ['GET', false],
    ['head', false],
    ['OPTIONS', false],
    ['POST', true],
    ['delete', true],
  ])('with a %s request writes: %s', (method, isWrite) => {
    expect(compiled({ type: 'request', config: { path: '/', method } })?.isWrite).toBe(isWrite)
  })

  test('is never paged, with any name and any setting of the integration', () => {
    const pagination = { format: 'page', config: { page_key: 'page' } }
    const { actions } = compilePlan({ pagination, actions: { list: { type: 'request', config: { path: '/' } } } })
    expect(actions.get('list')?.steps[0]).toMatchObject({ request: { isList: false, pagination: undefined } })
  })

  test('tells what it reads of parent records', () => {
    const config = { id: '{{resources.repos.id}}' }
    const request = { type: 'request', config: { path: '/{{resources.repos.name}}' } }
    const { actions } = compilePlan({
      ...withSteps(request, { type: 'update_context', config }),
      headers: { x: '{{resources.repos.owner}}' },
    })
    const paths = actions.get('run')?.parentPaths.map((path) => path.join('.'))
    expect(new Set(paths)).toEqual(new Set(['repos.name', 'repos.id', 'repos.owner']))
  })

  test.each<[Json, JsonObject]>([
    [{ expression: '{"a": 1}' }, { kind: 'expression', text: '{"a": 1}' }],
    ['{"a": 1}', { kind: 'expression', text: '{"a": 1}' }],
    [{ expression: 'a', other: 1 }, { kind: 'template' }],
  ])('updates the context from %j', (config, patch) => {
    expect(compiled({ type: 'update_context', config })?.steps[0]).toMatchObject({ patch })
  })
})
