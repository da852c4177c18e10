import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { runCommand } from '../../../../src/cli/commands/run-command.ts'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import { findEnvironmentIntegration } from '../../../../src/platform/integrations/sql/installations.ts'
import { findIntegration, findIntegrationByName } from '../../../../src/platform/integrations/sql/integrations.ts'
import { createEnvironment, findOperatorTeam, listEnvironments } from '../../../../src/platform/tenancy/index.ts'
import { insertSyncJob } from '../../../../src/sync/jobs/sql.ts'
import { testDatabase } from '../../../support/database.ts'
import { keepPrinted } from '../../../support/printed-output.ts'

const dir = mkdtempSync(join(tmpdir(), 'patchbay-cli-'))
afterAll(() => rmSync(dir, { recursive: true }))
const printed = keepPrinted()

/** Writes a file and returns its path. */
function file(name: string, content: JsonObject | string): string {
  const path = join(dir, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const CONFIG: JsonObject = {
  base_url: 'https://api.example.com',
  resources: { items: { list: { path: '/items' }, get: { path: '/items/{{id}}' } } },
}

const SCHEMA = 'http://localhost:8080/schemas/integration-config.json'

describe('patchbay check', () => {
  test.each<[string, string, JsonObject | string, number, string]>([
    ['a config alone', 'one.json', CONFIG, 0, 'no findings, 1 resource with 2 methods'],
    ['a whole definition', 'two.json', { name: 'two', config: CONFIG }, 0, 'no findings, 1 resource with 2 methods'],
    ['how many methods are tools', 'tools.json', CONFIG, 0, 'tools are those with a description: 0'],
    ['a name that no integration may have', 'named.json', { name: 'Bad Name', config: CONFIG }, 1, 'name must hold'],
    ['webhooks of any sender', 'open.json', { ...CONFIG, webhook: {} }, 0, 'warning: webhook.signature_verification'],
    [
      'a summary that counts warnings',
      'open.json',
      { ...CONFIG, webhook: {} },
      0,
      'valid, with 2 warnings, 1 resource',
    ],
    ['an address of the JSON Schema', 'hint.json', { $schema: SCHEMA, ...CONFIG }, 0, 'no findings, 1 resource'],
    ['an unknown key', 'three.json', { base_urll: 'x' }, 1, 'base_urll is not a known setting, did you mean base_url?'],
    ['what is no JSON', 'four.json', '{"a": 1,\n x}', 1, 'line 2 column 2'],
    ['a list', 'five.json', '[]', 1, 'must hold a JSON object'],
    [
      'a secret in the file',
      'six.json',
      { authorization: { format: 'bearer', config: { token: 'sk_live_1' } } },
      1,
      'authorization.config.token is a secret in a file',
    ],
  ])('%s', async (_what, name, content, code, said) => {
    expect(await runCommand(['check', file(name, content)], {})).toBe(code)
    expect(printed.text).toContain(said)
  })

  test('every file, whatever the others hold', async () => {
    const files = [
      file('broken.json', '{'),
      join(dir, 'missing.json'),
      dir,
      'githbu',
      file('no-object.json', '[]'),
      file('wrong.json', { base_urll: 'x' }),
      file('good.json', CONFIG),
    ]
    expect(await runCommand(['check', ...files], {})).toBe(1)
    const lines = printed.text.trimEnd().split('\n')
    expect(
      lines.map((line) => /not JSON|no file|cannot be read|did you mean \w+|JSON object|no findings/.exec(line)?.[0]),
    ).toEqual([
      'not JSON',
      'no file',
      'cannot be read',
      'did you mean github',
      'JSON object',
      'did you mean base_url',
      'no findings',
    ])
  })

  test('shows control characters of a file as escapes', async () => {
    const name = 'x\u001b[2J\u001b]0;title\u0007\n\u009b31m\u202e'
    const content = { ...CONFIG, [name]: 1, tool_tags: { [name]: ['a'] } }
    expect(await runCommand(['check', file('controls.json', content)], {})).toBe(1)
    expect(printed.text).toContain('x\\u001b[2J\\u001b]0;title\\u0007\\n\\u009b31m\\u202e')
    expect(printed.text).not.toMatch(/[^\P{C}\n]/u)
  })

  test('a shipped definition by its name, and a misspelt one with the one that was meant', async () => {
    expect(await runCommand(['check', 'github'], {})).toBe(0)
    expect(await runCommand(['check', 'gihub'], {})).toBe(1)
    expect(printed.text).toContain('did you mean github?')
  })

  test('an override over a definition, blamed by its own path', async () => {
    const override = file('override.json', { resources: { items: { list: { pagination: { format: 'pages' } } } } })
    expect(await runCommand(['check', file('base.json', CONFIG), '--override', override], {})).toBe(1)
    expect(printed.text).toContain(`${override}: resources.items.list.pagination.format must be one of page,`)
  })

  test('an override that names the JSON Schema', async () => {
    const override = file('hint-override.json', { $schema: SCHEMA, label: 'Ours' })
    expect(await runCommand(['check', file('base.json', CONFIG), '--override', override], {})).toBe(0)
    expect(printed.text).toContain('no findings')
  })

  test('an override that sets a misspelt variable, which is no error', async () => {
    const override = file('misspelt.json', { environment_variables: { CLIENT_ID: 'c1', CLIENT_SECRT: 's' } })
    expect(await runCommand(['check', 'hubspot', '--override', override], {})).toBe(0)
    const said = `${override}: warning: environment_variables.CLIENT_SECRT is set, but nothing in the definition reads it, did you mean CLIENT_SECRET?`
    expect(printed.text).toContain(said)
  })

  test('no file at all is wrong usage', async () => {
    expect(await runCommand(['check'], {})).toBe(2)
  })
})

describe('patchbay install', async () => {
  const { url, database } = await testDatabase()
  const environment = { DATABASE_URL: url, PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('k1'), PATCHBAY_DATA_DIR: dir }

  /** Runs it and reads the ids it printed. */
  async function install(...args: string[]) {
    printed.text = ''
    expect(await runCommand(['install', ...args], environment)).toBe(0)
    const id = (noun: string) => new RegExp(`^${noun} +(\\S+)$`, 'm').exec(printed.text)?.[1] ?? ''
    return { integrationId: id('integration'), installationId: id('environment_integration'), said: printed.text }
  }

  test('makes the integration and installs it, and said again replaces the definition where it is', async () => {
    const path = file('example.json', { name: 'example', category: 'tests', config: CONFIG })
    const first = await install(path)
    expect(first.said).toContain('example is installed')
    file('example.json', { name: 'example', category: 'tests', config: { ...CONFIG, label: 'Example', resources: {} } })
    const second = await install(path, '--override', file('o.json', { label: 'Ours' }))
    expect(second).toMatchObject({ ...first, said: expect.stringContaining('example is replaced') })
    const integration = await findIntegration(database.pool, second.integrationId)
    expect(integration?.config).toEqual({ base_url: 'https://api.example.com', label: 'Example', resources: {} })
    const team = await findOperatorTeam(database.pool)
    const [only] = await listEnvironments(database.pool, team?.id ?? '', { limit: 1 })
    const installed = await findEnvironmentIntegration(database.pool, only?.id ?? '', second.installationId)
    expect(installed?.override).toEqual({ label: 'Ours' })
  })

  test('takes a definition and an override that name the JSON Schema', async () => {
    const path = file('hinted.json', { name: 'hinted', config: { $schema: SCHEMA, ...CONFIG } })
    const { said, integrationId } = await install(path, '--override', file('hinted-o.json', { $schema: SCHEMA }))
    expect(said).not.toContain('warning')
    expect((await findIntegration(database.pool, integrationId))?.config).toMatchObject({ $schema: SCHEMA })
  })

  test('warns of an override that replaces the stored one, not of one that is merged into it', async () => {
    const path = file('warned.json', { name: 'warned', config: CONFIG })
    const override = file('warned-override.json', { environment_variables: { TOKN: 'x' } })
    const { said } = await install(path, '--override', override)
    expect(said).toContain(
      'warning: override.environment_variables.TOKN is set, but nothing in the definition reads it',
    )
    expect((await install(path, '--base-url', 'https://b.example.com')).said).not.toContain('warning')
  })

  test('a base URL is merged into the stored override, whose secrets stay; a file replaces it', async () => {
    const path = file('kept.json', { name: 'kept', config: CONFIG })
    const variables = { CLIENT_ID: 'c1', CLIENT_SECRET: 'sesame-1' }
    await install(path, '--override', file('kept-override.json', { environment_variables: variables, label: 'Ours' }))
    const { installationId } = await install(path, '--base-url', 'https://sandbox.example.com')
    const team = await findOperatorTeam(database.pool)
    const [only] = await listEnvironments(database.pool, team?.id ?? '', { limit: 1 })
    const environmentId = only?.id ?? ''
    const stored = async () => ({
      override: (await findEnvironmentIntegration(database.pool, environmentId, installationId))?.override,
      secrets: await createSecretStore(parseKeyRing(environment.PATCHBAY_ENCRYPTION_KEYS)).get(database.pool, {
        ownerId: environmentId,
        subjectType: 'environment_integration',
        subjectId: installationId,
      }),
    })
    expect(await stored()).toEqual({
      override: {
        environment_variables: { CLIENT_ID: 'c1', CLIENT_SECRET: '***' },
        label: 'Ours',
        base_url: 'https://sandbox.example.com',
      },
      secrets: { '/environment_variables/CLIENT_SECRET': '"sesame-1"' },
    })
    await install(
      path,
      '--override',
      file('kept-other.json', { label: 'Other' }),
      '--base-url',
      'https://b.example.com',
    )
    expect(await stored()).toEqual({ override: { label: 'Other', base_url: 'https://b.example.com' }, secrets: {} })
  })

  test('a sync job that reads a method which is gone, or lacks a parameter that is required now, is named', async () => {
    const path = file('shrunk.json', { name: 'shrunk', config: CONFIG })
    const { said } = await install(path)
    expect(said).not.toContain('warning')
    const team = await findOperatorTeam(database.pool)
    const [only] = await listEnvironments(database.pool, team?.id ?? '', { limit: 1 })
    const made = await insertSyncJob(database.pool, {
      id: newId(),
      environmentId: only?.id ?? '',
      label: 'Everything',
      integrationName: 'shrunk',
      resources: [{ resource: 'items', method: 'list' }],
      argsSchema: {},
      argsValidation: '',
      errorHandling: 'ignore',
      giveUpAfterSeconds: 0,
    })
    file('shrunk.json', {
      name: 'shrunk',
      config: { ...CONFIG, resources: { items: { get: { path: '/items/{{id}}' } } } },
    })
    const replaced = await install(path)
    expect(replaced.said).toContain(`warning: sync job ${made.id} (Everything): resources[0].method`)
    const list = { path: '/items', query: { site: '{{query.site}}' }, query_schema: { required: ['site'] } }
    file('shrunk.json', { name: 'shrunk', config: { ...CONFIG, resources: { items: { list } } } })
    const required = `warning: sync job ${made.id} (Everything): resources[0].query.site is missing, and items.list requires it`
    expect((await install(path)).said).toContain(required)
  })

  test('a bad name is rejected as `check` does, with every other finding', async () => {
    const path = file('misnamed.json', { name: 'Bad Name', config: { base_urll: 'x' } })
    printed.text = ''
    expect(await runCommand(['install', path], environment)).toBe(1)
    expect(printed.text).toContain('name must hold 1 to 128 of a-z')
    expect(printed.text).toContain('config.base_urll')
  })

  test('an invalid definition is rejected with every finding, and nothing is stored', async () => {
    const path = file('wrong.json', { name: 'wrong', config: { base_url: 'nope', pagination: { format: 'pagee' } } })
    printed.text = ''
    expect(await runCommand(['install', path], environment)).toBe(1)
    expect(printed.text).toContain('config.base_url')
    expect(printed.text).toContain('config.pagination.format')
    const team = await findOperatorTeam(database.pool)
    expect(await findIntegrationByName(database.pool, team?.id ?? '', 'wrong')).toBeUndefined()
  })

  test('several environments are listed where one must be named', async () => {
    const team = await findOperatorTeam(database.pool)
    const made = await createEnvironment(database.pool, team?.id ?? '', { name: 'Staging' })
    printed.text = ''
    expect(await runCommand(['install', 'github'], environment)).toBe(1)
    expect(printed.text).toContain(`${made.id} (Staging)`)
  })
})
