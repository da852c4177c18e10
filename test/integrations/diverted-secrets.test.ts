import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../../src/base/index.ts'
import { createDefinitionCache, updateEnvironmentIntegration } from '../../src/integrations/index.ts'
import { shipped } from '../catalog/shipped.ts'
import { integrationsFixture } from './fixture.ts'

const { database, tx, deps, secrets, own, other, addIntegration, install } = await integrationsFixture()
const KEY: JsonObject = { name: 'api_key', type: 'password', required: true }

/** What calls of an installation run on, as text; a secret that is withheld is not in it. */
async function effective(config: JsonObject, override: JsonObject, scope = other): Promise<string> {
  const { id: integrationId } = await addIntegration({ sharing: 'allow', config })
  const { id } = await install({ integrationId, override }, scope)
  return JSON.stringify((await createDefinitionCache(secrets).get(tx, scope.environmentId, id)).config)
}

function gitlab(client: JsonObject): JsonObject {
  const config = structuredClone(shipped('gitlab').config) as { credentials: { oauth2: { config: { client: Json } } } }
  config.credentials.oauth2.config.client = client
  return config as unknown as JsonObject
}

const CLIENT = { id: 'owner', secret: 'secret-of-the-owner' }
const withClient = (tokenHost: string, fields: Json = [KEY]): JsonObject => ({
  base_url: 'https://api.vendor.example',
  credentials: {
    format: 'oauth2_client_credentials',
    config: { client: CLIENT, auth: { tokenHost, tokenPath: '/t' }, fields },
  },
})
const withHeader = (base_url: string): JsonObject => ({
  base_url,
  headers: { 'x-api-key': 'secret-of-the-owner' },
  credentials: {
    format: 'api_key',
    config: { fields: [KEY, { name: 'host', pattern: '^(?:eu|us)[.]vendor[.]example$' }] },
  },
})

describe('secrets of an integration of another team', () => {
  it.each<[string, JsonObject]>([
    ['the shipped definition of GitLab', gitlab(CLIENT)],
    ['a variable in the token host', withClient('https://{{env.AUTH_HOST?:auth.vendor.example}}')],
    ['a variable as a whole address', withHeader('{{environment_variables.API_URL}}')],
    ['a field with a pattern', withHeader('https://{{host}}')],
  ])('are not used where its host is decided by %s: the installer gives its own', async (_, config) => {
    await expect(effective(config, {})).rejects.toMatchObject({
      violations: [expect.objectContaining({ rule: 'override.diverts_secrets' })],
    })
  })

  it.each([
    '{{context.instance_url}}/v1',
    'https://{{context.site|host?:api.vendor.example}}',
    'https://{{query.host}}',
  ])('are in no definition whose accounts or callers decide the host: %s', async (address) => {
    await expect(addIntegration({ config: withHeader(address) })).rejects.toMatchObject({
      violations: [
        expect.objectContaining({ rule: expect.stringMatching(/^url[.](?:diverts_secret|host_of_caller)$/) }),
      ],
    })
  })

  it.each<[string, JsonObject]>([
    ['a literal host', withHeader('https://api.vendor.example')],
    ['a label below a literal domain', withHeader('https://{{host}}.vendor.example')],
    [
      'a token host that is literal, while the base address is not',
      {
        ...withClient('https://auth.vendor.example'),
        base_url: '{{context.instance_url}}',
      },
    ],
  ])('are used with %s', async (_, config) => {
    expect(await effective(config, {})).toContain('secret-of-the-owner')
  })

  it("are the installer's own where it gives them, and the owner's are nowhere", async () => {
    const override = {
      environment_variables: { GITLAB_HOST: 'git.installer.example' },
      credentials: { oauth2: { config: { client: { id: 'mine', secret: 'secret-of-the-installer' } } } },
    }
    const text = await effective(gitlab(CLIENT), override)
    expect(text).toContain('secret-of-the-installer')
    expect(text).not.toContain('secret-of-the-owner')
  })
})

describe('an environment token', () => {
  const environment = { ...own, kind: 'environment' as const }
  const patch = (id: string, override: JsonObject, scope: typeof environment | typeof own, isUsed = false) => {
    const accounts = { existOfInstallation: async () => isUsed }
    const change = { id, override }
    return database.transaction((each) => updateEnvironmentIntegration({ ...deps, accounts }, each, scope, change))
  }

  it.each<[string, JsonObject]>([
    ['the base address', { base_url: 'https://elsewhere.example' }],
    ['the address of a method', { resources: { a: { list: { path: '/', base_url: 'https://elsewhere.example' } } } }],
    ['a variable in an address', { environment_variables: { HOST: 'elsewhere.example' } }],
    [
      'where next links may lead',
      { pagination: { format: 'link_header', config: { allowed_origins: ['https://elsewhere.example'] } } },
    ],
    ['the pattern of a field in an address', { credentials: { config: { fields: [KEY, { name: 'host' }] } } }],
  ])('changes %s only while there is nothing to protect', async (_, override) => {
    const config: JsonObject = {
      base_url: 'https://{{env.HOST?:api.vendor.example}}',
      credentials: {
        format: 'api_key',
        config: { fields: [KEY, { name: 'host', pattern: '^eu[.]vendor[.]example$' }] },
      },
      resources: { b: { list: { path: '/', base_url: 'https://{{host}}' } } },
    }
    const plain = await install({ integrationId: (await addIntegration({ config })).id })
    await expect(patch(plain.id, override, environment, true)).rejects.toMatchObject({ reason: 'TEAM_TOKEN_REQUIRED' })
    await expect(patch(plain.id, override, environment)).resolves.toBeDefined()

    const used = await install({ integrationId: (await addIntegration({ config })).id })
    await expect(patch(used.id, override, { ...own, kind: 'team' } as never, true)).resolves.toBeDefined()
  })

  it('changes what decides no host at any time', async () => {
    const { id } = await install({ integrationId: (await addIntegration()).id })
    const override = { label: 'Ours', environment_variables: { WORKSPACE: 'a' }, retry: { max_attempts: 2 } }
    await expect(patch(id, override, environment, true)).resolves.toBeDefined()
  })
})
