import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/base/index.ts'
import { secretPaths } from '../../src/definitions/config-values.ts'
import { checkConfig, findWarnings } from '../../src/definitions/index.ts'

/** `field rule` of every finding about one credential format. */
function lines(config: JsonObject, format = 'oauth2'): string[] {
  return checkConfig({ credentials: { format, config } }, 'integration', 'c').map(
    ({ field, rule }) => `${field} ${rule}`,
  )
}

const AT = 'c.credentials.config'
const FROM_REDIRECT = { accounts: 'accounts-server' }
const CHECKED = { accounts: { parameter: 'accounts-server', pattern: 'https://accounts\\.example\\.(com|eu)' } }

describe('settings of a credential format', () => {
  test.each<[string, JsonObject, string[]]>([
    [
      'a token host from the redirect',
      { auth: { tokenHost: '{{accounts}}' }, context_from_redirect: FROM_REDIRECT },
      [`${AT}.auth.tokenHost credentials.redirect_host`],
    ],
    [
      'labels of hosts from the redirect',
      {
        auth: {
          tokenHost: 'https://a.example.com/{{accounts}}',
          refreshHost: 'https://accounts.{{context.accounts}}/x',
          revokeHost: 'https://{{accounts}}.example.com',
        },
        context_from_redirect: FROM_REDIRECT,
      },
      [`${AT}.auth.refreshHost credentials.redirect_host`, `${AT}.auth.revokeHost credentials.redirect_host`],
    ],
    [
      'a token host from the redirect with a pattern',
      { auth: { tokenHost: '{{accounts}}' }, context_from_redirect: CHECKED },
      [],
    ],
    [
      'a secret as context',
      {
        context_from_redirect: { a: 'code', b: 'spapi', c: 'state', d: 'shop' },
        authorize: { code_parameter: 'spapi' },
      },
      ['a', 'b', 'c'].map((key) => `${AT}.context_from_redirect.${key} credentials.redirect_secret`),
    ],
    [
      'a required scope that is not requested',
      { scope: ['a'], optional_scope: ['b'], required_scope: ['a', 'b', 'c'] },
      [`${AT}.required_scope[2] credentials.scope_unrequested`],
    ],
    ['an issuer that is required and not named', { auth: { issuerRequired: true } }, [`${AT}.auth.issuer required`]],
    [
      'an idle limit beyond the end',
      { lifetimes: { refresh_token_idle_days: 90, refresh_token_max_days: 30 } },
      [`${AT}.lifetimes.refresh_token_idle_days credentials.lifetimes`],
    ],
    [
      'an end of the client that is no date',
      { lifetimes: { client_secret_expires_at: 'next year' } },
      [`${AT}.lifetimes.client_secret_expires_at date`],
    ],
    ['an end of the client', { lifetimes: { client_secret_expires_at: '2027-03-01' } }, []],
    ['an end of the client by variable', { lifetimes: { client_secret_expires_at: '{{env.EXPIRES}}' } }, []],
    ['an identity in the token response', { identity: { path: 'team.id' } }, []],
    [
      'a pattern that is no regular expression',
      { context_from_redirect: { a: { parameter: 'p', pattern: '(' } } },
      [`${AT}.context_from_redirect.a.pattern field.pattern`],
    ],
    [
      'an unknown standard parameter',
      { token: { parameter_names: { client: 'x' } } },
      [`${AT}.token.parameter_names.client unknown_field`],
    ],
    ['an unknown root', { token: { values: { a: 'secret' } } }, [`${AT}.token.values.a expression.unknown_name`]],
  ])('%s', (_what, config, expected) => {
    expect(lines(config)).toEqual(expected)
  })

  test('an identity of a key needs a request', () => {
    expect(lines({ identity: { path: 'id' } }, 'api_key')).toEqual([`${AT}.identity.request required`])
    expect(lines({ identity: { path: 'id', request: { path: '/me' } } }, 'api_key')).toEqual([])
  })
})

test('two formats with the same authentication method may be offered side by side', () => {
  const jwt = { config: { algorithm: 'HS256', key: 'x', claims: {} } }
  const vendor_oauth = { config: { token_request: { path: '/login' }, token_expression: 'body.token' } }
  expect(checkConfig({ credentials: { jwt, vendor_oauth } }, 'integration', 'c')).toEqual([])
})

test('the end of a client secret is no secret itself', () => {
  const config = { client: { secret: 's' }, lifetimes: { client_secret_expires_at: '2027-03-01' } }
  expect(secretPaths({ credentials: { format: 'oauth2', config } })).toEqual([
    ['credentials', 'config', 'client', 'secret'],
  ])
})

describe('what a customer types in', () => {
  const REQUEST = { type: 'request', config: { path: '/me' } }
  const KEY = { api_key: {} }
  const warnings = (config: JsonObject) => findWarnings(config, 'c').map(({ field, rule }) => `${field} ${rule}`)

  test.each<[string, JsonObject]>([
    ['tells who the account is', { credentials: { api_key: { config: { identity: { request: REQUEST.config } } } } }],
    ['is tried by an action', { credentials: KEY, actions: { validation: REQUEST } }],
    [
      'is tried by a step',
      { credentials: KEY, actions: { post_install: { steps: [{ type: 'transform' }, REQUEST] } } },
    ],
    ['may be left empty', { credentials: { api_key: { config: { fields: [{ name: 'key' }] } } } }],
    ['is asked of a token endpoint', { credentials: { oauth2: {} } }],
  ])('needs no warning when it %s', (_what, config) => {
    expect(warnings(config)).toEqual([])
  })

  test.each<[string, JsonObject, string]>([
    ['by default', { credentials: KEY }, 'c.credentials.api_key'],
    ['as the only way', { credentials: { format: 'api_key', config: {} } }, 'c.credentials'],
    ['by an action of another purpose', { credentials: KEY, actions: { sites: REQUEST } }, 'c.credentials.api_key'],
    [
      'by steps that send nothing',
      { credentials: KEY, actions: { validation: { type: 'x' } } },
      'c.credentials.api_key',
    ],
  ])('is warned of when nothing tries it: %s', (_what, config, field) => {
    expect(warnings(config)).toEqual([`${field} account.unverified`])
  })
})
