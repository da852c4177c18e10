import { describe, expect, it, test } from 'vitest'
import type { z } from 'zod'
import { findAddressViolations, secretPaths } from '../../../../src/engine/definitions/index.ts'
import { AUTHORIZATION_FORMATS } from '../../../../src/engine/formats/authorization/registry.ts'
import { CREDENTIAL_FORMATS } from '../../../../src/engine/formats/credential/registry.ts'
import { fieldRoles } from '../../../../src/engine/formats/schema-types.ts'
import { SIGNATURE_FORMATS } from '../../../../src/engine/formats/signature/registry.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'

const paths = (config: JsonObject) => secretPaths(config).map((path) => path.join('.'))
const method = (settings: JsonObject) => ({ resources: { things: { list: settings } } })

describe('credential material is found', () => {
  test.each<[string, JsonObject, string[]]>([
    [
      'client secrets',
      { credentials: { oauth2: { config: { client: { id: 'i', secret: 's' } } } } },
      ['credentials.oauth2.config.client.secret'],
    ],
    [
      'client secrets of the single shape',
      { credentials: { format: 'oauth2', config: { client: { secret: 's' } } } },
      ['credentials.config.client.secret'],
    ],
    [
      'token parameters by name',
      { credentials: { oauth2: { config: { tokenParams: { api_key: 'k', grant: 'g' } } } } },
      ['credentials.oauth2.config.tokenParams.api_key'],
    ],
    ['literal tokens', { authorization: { format: 'bearer', config: { token: 't' } } }, ['authorization.config.token']],
    [
      'passwords',
      { authorization: { format: 'basic', config: { username: 'u', password: 'p' } } },
      ['authorization.config.password'],
    ],
    [
      'header values',
      { authorization: { format: 'header', config: { headers: { A: 'x', B: '{{api_key}}' } } } },
      ['authorization.config.headers.A'],
    ],
    [
      'keys in the query',
      { authorization: { format: 'query', config: { params: { key: 'k' } } } },
      ['authorization.config.params.key'],
    ],
    [
      'settings of a method',
      method({ authorization: { format: 'bearer', config: { token: 't' } } }),
      ['resources.things.list.authorization.config.token'],
    ],
    [
      'headers whose name says so',
      { headers: { 'X-Api-Key': 'k', Authorization: 'a', Accept: 'x' } },
      ['headers.X-Api-Key', 'headers.Authorization'],
    ],
    [
      'no addresses of token endpoints',
      { credentials: { oauth2: { config: { auth: { tokenHost: 'https://a.example.com', tokenPath: '/token' } } } } },
      [],
    ],
    ['parameters whose name says so', { query: { access_token: 't', page: 1 } }, ['query.access_token']],
    [
      'signature secrets',
      {
        webhook: {
          signature_verification: {
            format: 'hmac',
            config: { secret: 's', parts: ['$body'], compare_with: '$header.x' },
          },
        },
      },
      ['webhook.signature_verification.config.secret'],
    ],
    [
      'headers in actions',
      { actions: { a: { type: 'request', config: { path: '/x', headers: { Authorization: 'a' } } } } },
      ['actions.a.config.headers.Authorization'],
    ],
    [
      'environment variables whose name says so, and all below them',
      {
        environment_variables: {
          API_TOKEN: 't',
          PRIVATE_KEY: 'k',
          stripe_secret: { live: 'a', test: ['b', 1] },
          nested: { password: 'p', user: 'u' },
          PLAIN: 'x',
          EMPTY_SECRET: '',
          NULL_SECRET: null,
        },
      },
      [
        'environment_variables.API_TOKEN',
        'environment_variables.PRIVATE_KEY',
        'environment_variables.stripe_secret.live',
        'environment_variables.stripe_secret.test.0',
        'environment_variables.stripe_secret.test.1',
        'environment_variables.nested.password',
      ],
    ],
  ])('%s', (_what, config, expected) => {
    expect(paths(config)).toEqual(expected)
  })
})

describe('what only points at a secret is not one', () => {
  test.each<[string, JsonObject]>([
    ['a placeholder', { authorization: { format: 'bearer', config: { token: '{{api_key}}' } } }],
    ['a text around a placeholder', { headers: { Authorization: 'Token {{api_key}}' } }],
    [
      'a placeholder with default',
      { authorization: { format: 'basic', config: { username: 'u', password: '{{password?:}}' } } },
    ],
    ['an empty text', { authorization: { format: 'bearer', config: { token: '' } } }],
  ])('%s', (_what, config) => {
    expect(paths(config)).toEqual([])
  })
})

test('a text that is no template may be a secret all the same', () => {
  expect(paths({ authorization: { format: 'bearer', config: { token: 'a{{b' } } })).toEqual([
    'authorization.config.token',
  ])
})

/** A value with a literal text in every field of a schema that is for credential material; `undefined` when it has none. */
function withSecrets(schema: z.core.$ZodType): Json | undefined {
  const role = fieldRoles.get(schema)
  if (role?.kind === 'template' && role.secret) return 's3cret'
  const def = (schema as z.core.$ZodTypes)._zod.def
  switch (def.type) {
    case 'object': {
      const members = Object.entries(def.shape).flatMap(([key, child]) => {
        const value = withSecrets(child)
        return value === undefined ? [] : [[key, value] as const]
      })
      return members.length === 0 ? undefined : Object.fromEntries(members)
    }
    case 'record': {
      const value = withSecrets(def.valueType)
      return value === undefined ? undefined : { some: value }
    }
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
      return withSecrets(def.innerType)
    default:
      return undefined
  }
}

describe('an override that leaves the format out, which its definition has, keeps the secrets of', () => {
  const places: [string, readonly { format: string; config: z.ZodType }[], (choice: JsonObject) => JsonObject][] = [
    ['credentials', CREDENTIAL_FORMATS, (choice) => ({ credentials: choice })],
    ['named credentials', CREDENTIAL_FORMATS, (choice) => ({ credentials: { work: choice } })],
    ['authorization', AUTHORIZATION_FORMATS, (choice) => ({ authorization: choice })],
    ['signatures', SIGNATURE_FORMATS, (choice) => ({ webhook: { signature_verification: choice } })],
  ]
  const rows = places.flatMap(([place, formats, write]) =>
    formats.flatMap(({ format, config: schema }) => {
      const config = withSecrets(schema)
      return config === undefined ? [] : [[`${place} ${format}`, write({ format, config }), write({ config })] as const]
    }),
  )

  test.each(rows)('%s', (_name, whole, partial) => {
    expect(paths(whole)).not.toEqual([])
    expect(paths(partial).sort()).toEqual(paths(whole).sort())
  })
})

test('a config that is not valid is searched as far as it has a shape', () => {
  const config = {
    authorization: { format: 'bearer', config: { token: 't', nope: 1 } },
    credentials: 'x',
    resources: [1],
    pagination: { format: 'x' },
  }
  expect(paths(config)).toEqual(['authorization.config.token'])
})

describe('the addresses of a config', () => {
  it('are those written out, wherever a call would go, and not those that depend on the account', () => {
    const config = {
      base_url: 'https://{{subdomain}}.example.com',
      logo: 'https://cdn.example.com/logo.png',
      resources: { files: { get: { method: 'get', path: '/f', base_url: 'https://files.example.com' } } },
      credentials: { format: 'oauth2', config: { auth: { tokenHost: 'http://10.0.0.1' } } },
    }
    expect(findAddressViolations(config, 'override', (url) => `is ${url}`)).toEqual([
      {
        field: 'override.resources.files.get.base_url',
        description: 'is https://files.example.com',
        rule: 'url.not_allowed',
      },
      {
        field: 'override.credentials.config.auth.tokenHost',
        description: 'is http://10.0.0.1',
        rule: 'url.not_allowed',
      },
    ])
    expect(findAddressViolations(config, 'override', () => undefined)).toEqual([])
  })
})
