import { describe, expect, test } from 'vitest'
import { checkConfig, checkOverride, findWarnings, secretPaths } from '../../../../src/engine/definitions/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'

const NOW = new Date('2026-11-29')

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

describe('credentials of one format', () => {
  const key = (label?: string) => ({ format: 'api_key', ...(label === undefined ? {} : { label }), config: {} })
  const findings = (credentials: JsonObject) =>
    checkConfig({ credentials }, 'integration', 'c').map(({ field, description }) => `${field} ${description}`)

  test.each<[string, JsonObject]>([
    ['under names of their own', { live: key('Live'), sandbox: key('Sandbox') }],
    ['beside the one under the name of the format', { api_key: { config: {} }, sandbox: key('Sandbox') }],
  ])('may be offered side by side: %s', (_what, credentials) => {
    expect(findings(credentials)).toEqual([])
  })

  test.each<[string, JsonObject, string]>([
    [
      'no format',
      { oauth_2: { config: {} } },
      'c.credentials.oauth_2.format is required, because the key oauth_2 is not the name of a format, did you mean oauth2? There are api_key',
    ],
    [
      'an unknown format',
      { live: { format: 'api_keys', config: {} } },
      'c.credentials.live.format must be one of api_key',
    ],
    ['the name of another format', { oauth2: key() }, 'c.credentials.oauth2.format must be "oauth2"'],
    [
      'a key that no account could keep',
      { 'Live!': key() },
      'c.credentials must have keys of at most 64 lower-case letters',
    ],
    ['a key of the other shape', { config: key() }, 'c.credentials must not have the key config'],
    [
      'too many',
      Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`k${at}`, key()])),
      'c.credentials must have at most 20',
    ],
    [
      'a mistake deep inside',
      { live: { format: 'api_key', config: { fields: [{ name: 'a', typ: 'text' }] } } },
      'c.credentials.live.config.fields[0].typ is not a known setting',
    ],
  ])('are a finding with %s', (_what, credentials, finding) => {
    expect(findings(credentials)[0]).toContain(finding)
  })

  test('of an override are suggested by the keys of the definition too', () => {
    const findings = (override: JsonObject) =>
      checkOverride(
        { credentials: { live: key('Live'), sandbox: key('Sandbox') } },
        { credentials: override },
        'o',
      ).map(({ field, description }) => `${field} ${description}`)
    expect(findings({ sandbox: { label: 'Test' } })).toEqual([])
    expect(findings({ sanbox: { label: 'Test' } })).toEqual([
      'o.credentials.sanbox.format is required, because the key sanbox is neither a credential of the definition nor the name of a format, did you mean sandbox? There are api_key, jwt, live, oauth1, oauth2, oauth2_client_credentials, sandbox, vendor_oauth',
    ])
    expect(findings({ oauth_2: { config: {} } })[0]).toContain('did you mean oauth2?')
  })

  test.each<[string, JsonObject, string[]]>([
    ['that alone say nothing', { live: key(), sandbox: key() }, ['c.credentials.live', 'c.credentials.sandbox']],
    [
      'of the same label',
      { live: key('Key'), api_key: { label: 'Key' }, jwt: {} },
      ['c.credentials.live', 'c.credentials.api_key'],
    ],
    ['of which one has a label', { api_key: {}, sandbox: key('Sandbox') }, []],
  ])('are warned of when the customer cannot tell them apart: %s', (_what, credentials, fields) => {
    const warnings = findWarnings({ credentials }, 'c', NOW).filter(({ rule }) => rule === 'credentials.same_label')
    expect(warnings.map(({ field }) => field)).toEqual(fields)
  })

  test('are changed by an override under their keys, without the format again', () => {
    const oauth2 = {
      format: 'oauth2',
      config: { client: { id: 'a', secret: 'b' }, auth: { tokenHost: 'https://a.example' } },
    }
    const over = (credentials: JsonObject) =>
      checkOverride({ credentials: { eu: oauth2, us: oauth2 } }, { credentials }, 'o').map(({ field }) => field)
    expect(over({ eu: { config: { optional_scope: ['a'] } }, us: { label: 'US' } })).toEqual([])
    expect(over({ eu: null, jp: oauth2 })).toEqual([])
    expect(over({ eu: { config: { optional_scop: ['a'] } } })).toEqual(['o.credentials.eu.config.optional_scop'])
    expect(over({ ue: { config: { optional_scope: ['a'] } } })).toEqual(['o.credentials.ue.format'])
  })
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
  const warnings = (config: JsonObject) => findWarnings(config, 'c', NOW).map(({ field, rule }) => `${field} ${rule}`)

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
