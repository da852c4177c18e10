import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { createDefinitionCache } from '../../../../src/platform/integrations/index.ts'
import { shipped } from '../../engine/catalog/shipped.ts'
import { integrationsFixture } from './fixture.ts'

const { tx, secrets, own, other, addIntegration, install } = await integrationsFixture()
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

describe('an override of the own team', () => {
  it.each<[string, JsonObject]>([
    ['Salesforce, whose instance the token response names', shipped('salesforce').config as JsonObject],
    ['Tableau, whose server the customer names', shipped('tableau').config as JsonObject],
  ])('holds the secrets that the definition reads elsewhere than at such a host: %s', async (_, config) => {
    const environment_variables = {
      CLIENT_ID: 'c',
      CLIENT_SECRET: 'secret-of-the-team',
      WEBHOOK_SECRET: 'secret-of-hooks',
    }
    const text = await effective(config, { environment_variables }, own)
    expect(text).toContain('secret-of-the-team')
    expect(text).toContain('secret-of-hooks')
  })

  it('holds no secret that a method sends to such a host', async () => {
    const config: JsonObject = {
      base_url: '{{context.instance_url}}/v1',
      credentials: { format: 'api_key', config: { fields: [KEY] } },
      resources: { a: { list: { path: '/a', headers: { 'x-app': '{{env.APP_SECRET}}' } } } },
    }
    const override = { environment_variables: { APP_SECRET: 'secret-of-the-team' } }
    await expect(effective(config, override, own)).rejects.toMatchObject({
      violations: [expect.objectContaining({ rule: 'url.diverts_secret' })],
    })
  })
})
