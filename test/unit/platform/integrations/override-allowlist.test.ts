import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  checkSecretExfiltration,
  findSecretExfiltrationPaths,
} from '../../../../src/platform/integrations/override-allowlist.ts'

describe('an override of another team', () => {
  it.each<[string, JsonObject, string[]]>([
    ['nothing', {}, []],
    [
      'appearance and variables',
      { $schema: 'x', label: 'x', tags: ['a'], description: '', environment_variables: { A: { b: 1 } } },
      [],
    ],
    ['scopes', { credentials: { oauth2: { label: 'x', config: { optional_scope: ['a'], scope: [] } } } }, []],
    ['its own client', { credentials: { config: { client: { id: 'a', secret: 'b' } } } }, []],
    ['the base address', { base_url: 'https://evil.example' }, ['base_url']],
    [
      'the token host',
      { credentials: { oauth2: { config: { auth: { tokenHost: 'x' } } } } },
      ['credentials.oauth2.config.auth.tokenHost'],
    ],
    ['a method', { resources: { a: { list: { base_url: 'x' } } } }, ['resources.a.list.base_url']],
    ['a header', { headers: { a: '{{env.b}}' } }, ['headers.a']],
    [
      'where paging may lead',
      { pagination: { config: { allowed_origins: ['x'] } } },
      ['pagination.config.allowed_origins'],
    ],
    ['expressions about responses', { error_expression: 'body.error', rate_limit: { is_rate_limited: 'false' } }, []],
    [
      "expressions that read the owner's variables",
      {
        error_expression: '{"status": 200, "result": env.A}',
        rate_limit: { is_rate_limited: '`env`', retry_after_header_expression: '1' },
      },
      ['error_expression', 'rate_limit.is_rate_limited'],
    ],
    ['a label that is the word', { label: 'env', environment_variables: { A: 'env' } }, []],
    ['a removal', { authorization: null }, ['authorization']],
    ['something not known today', { new_setting: 1, label: 'x' }, ['new_setting']],
  ])('may hold %s unless it could divert secrets', (_, override, diversions) => {
    expect(findSecretExfiltrationPaths(override).map((path) => path.join('.'))).toEqual(diversions)
  })

  it('is free while the owner keeps no secrets in the config', () => {
    const override = { base_url: 'https://mine.example' }
    expect(
      checkSecretExfiltration({ authorization: { config: { token: '{{api_key}}' } } }, override, 'override'),
    ).toEqual([])
    expect(
      checkSecretExfiltration({ authorization: { config: { token: '***' } } }, override, 'override'),
    ).toMatchObject([{ field: 'override.base_url', rule: 'override.diverts_secrets' }])
  })
})
