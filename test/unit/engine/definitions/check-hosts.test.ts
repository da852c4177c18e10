import { describe, expect, test } from 'vitest'
import { checkConfig } from '../../../../src/engine/definitions/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'

const HOST_RULES = ['credentials.field_host', 'credentials.redirect_host', 'form.host', 'form.credential_name']

/** `field rule` of every finding about a host. */
function lines(config: JsonObject): string[] {
  return checkConfig(config, 'integration', 'c')
    .filter(({ rule }) => HOST_RULES.includes(rule ?? ''))
    .map(({ field, rule }) => `${field} ${rule}`)
}

const OWN = { id: '{{env.ID}}', secret: '{{env.SECRET}}' }
const AT = 'c.credentials.config'
const FIELD = [`${AT}.fields[0].pattern credentials.field_host`]

function oauth2(host: string, field: JsonObject, more: JsonObject = {}): JsonObject {
  const fields = [{ name: 'host', ...field }]
  return { credentials: { format: 'oauth2', config: { client: OWN, auth: { tokenHost: host }, fields, ...more } } }
}

describe('a field that decides where the client secret is sent', () => {
  test.each<[string, JsonObject, string[]]>([
    ['a whole host', oauth2('https://{{host}}', {}), FIELD],
    ['a host with a default', oauth2('https://{{host?:example.com}}', {}), FIELD],
    ['a host under the name of the root', oauth2('https://{{api_key.host}}', {}), FIELD],
    ['a host after a variable', oauth2('https://{{env.HOST|credentials.host}}', {}), FIELD],
    ['an address', oauth2('{{context.host}}', { format: 'url' }), FIELD],
    ['a host with a port', oauth2('https://{{host}}:8443/x', {}), FIELD],
    ['a pattern of any host', oauth2('https://{{host}}', { pattern: '[a-z0-9.-]+' }), FIELD],
    ['a pattern of any address', oauth2('{{host}}', { pattern: 'https?://[^/]+' }), FIELD],
    ['a top-level domain after it', oauth2('https://{{host}}.com', { format: 'hostname_label' }), FIELD],
    ['a domain that it ends', oauth2('https://{{host}}zendesk.com', { format: 'hostname_label' }), FIELD],
    ['a top-level domain', oauth2('https://accounts.{{host}}', {}), FIELD],
    ['a private key', oauth2('https://{{host}}', {}, { client: { private_key: '{{env.KEY}}' } }), FIELD],
    ['a secret in the definition', oauth2('https://{{host}}', {}, { client: { secret: 's' } }), FIELD],
    ['extend.host', oauth2('https://a.example.com', {}, { extend: { path: '/x', host: 'https://{{host}}' } }), FIELD],
    ['refreshHost', oauth2('', {}, { auth: { tokenHost: 'https://a.b.c', refreshHost: 'https://{{host}}' } }), FIELD],
    ['base_url without tokenHost', { ...oauth2('', {}, { auth: {} }), base_url: 'https://{{host}}/v1' }, FIELD],
    ['base_url beside tokenHost', { ...oauth2('https://a.example.com', {}), base_url: 'https://{{host}}' }, []],
    ['a pattern of hosts', oauth2('https://{{host}}', { pattern: '[a-z0-9-]+\\.okta\\.com' }), []],
    ['a label below a domain', oauth2('https://{{host}}.zendesk.com', { format: 'hostname_label' }), []],
    ['a part of a label', oauth2('https://eu-{{host}}-api.example.com:{{env.PORT}}', {}), []],
    ['a part of the path', oauth2('https://a.example.com/{{host}}', {}), []],
    ['listed hosts', oauth2('https://{{host}}', { type: 'single_select', options: [{ value: 'a.example.com' }] }), []],
    ["the customer's own secret", oauth2('https://{{host}}', {}, { client: { secret: '{{client_secret}}' } }), []],
    ['a key', { credentials: { format: 'api_key', config: { fields: [{ name: 'host' }] } }, base_url: '{{host}}' }, []],
  ])('%s', (_what, config, expected) => {
    expect(lines(config)).toEqual(expected)
  })
})

describe('a host from the redirect', () => {
  const SOURCE = { context_from_redirect: { host: 'server' } }
  const withPattern = (pattern: string) => ({ context_from_redirect: { host: { parameter: 'server', pattern } } })
  const config = (settings: JsonObject, base_url = 'https://a.example.com') => ({
    base_url,
    credentials: { format: 'oauth2', config: settings },
  })
  test.each<[string, JsonObject, string[]]>([
    [
      'of extend',
      config({ ...SOURCE, extend: { path: '/x', host: 'https://{{host}}' } }),
      [`${AT}.extend.host credentials.redirect_host`],
    ],
    ['of base_url', config(SOURCE, 'https://{{host}}'), ['c.base_url credentials.redirect_host']],
    [
      'with a pattern of any host',
      config({ ...withPattern('[a-z.]+'), auth: { tokenHost: 'https://{{host}}' } }),
      [`${AT}.auth.tokenHost credentials.redirect_host`],
    ],
    [
      'with a pattern of any address',
      config(withPattern('https://.*'), '{{host}}'),
      ['c.base_url credentials.redirect_host'],
    ],
    ['with a pattern', config(withPattern('[a-z]+\\.example\\.com'), 'https://{{host}}'), []],
  ])('%s', (_what, checked, expected) => {
    expect(lines(checked)).toEqual(expected)
  })
})

describe('a field of the form for connected accounts that is part of a host', () => {
  const SITE = { name: 'site', type: 'single_select', data_source: { resource: 'sites' }, options: { value: 'id' } }
  const FORM = 'c.actions.post_connect_user_form.config.fields[0]'
  const config = (field: Json, base_url: string, more: JsonObject = {}): JsonObject => ({
    base_url,
    resources: { sites: { list: { path: '/s', base_url: 'https://a.example.com' } } },
    actions: { post_connect_user_form: { type: 'form', config: { fields: [field] } } },
    ...more,
  })
  const authorizeHost = { credentials: { format: 'oauth2', config: { auth: { authorizeHost: '{{site}}' } } } }
  const fixed = 'https://a.example.com'
  const methodUrl = { resources: { sites: { list: { path: '/s', base_url: '{{site}}' } } } }
  const collected = { credentials: { format: 'api_key', config: { fields: [{ name: 'site' }] } } }

  test.each<[string, JsonObject, string[]]>([
    ['a remote select', config(SITE, '{{context.site|env.URL}}'), [`${FORM}.pattern form.host`]],
    ['a text', config({ name: 'site' }, 'https://{{site}}'), [`${FORM}.pattern form.host`]],
    ['of the consent', config(SITE, fixed, authorizeHost), [`${FORM}.pattern form.host`]],
    ['of a method', config(SITE, fixed, methodUrl), [`${FORM}.pattern form.host`]],
    ['any pattern', config({ ...SITE, pattern: '.+' }, '{{site}}'), [`${FORM}.pattern form.host`]],
    ['its label', config(SITE, 'https://{{site_label}}.example.com'), [`${FORM}.name form.host`]],
    [
      'the name of a credential field',
      config({ ...SITE, pattern: 'a' }, 'https://{{site}}.example.com', collected),
      [`${FORM}.name form.credential_name`],
    ],
    ['a pattern', config({ ...SITE, pattern: 'https://[a-z]+\\.example\\.com' }, '{{site}}'), []],
    ['a label below a domain', config(SITE, 'https://{{site}}.example.com'), []],
    ['a part of the path', config(SITE, 'https://a.example.com/{{site}}'), []],
    ['the name of a credential field in the path', config(SITE, 'https://a.example.com/{{site}}', collected), []],
  ])('%s', (_what, checked, expected) => {
    expect(lines(checked)).toEqual(expected)
  })
})
