import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { checkConfig } from '../../../../src/engine/definitions/index.ts'
import { AUTHORIZATION_FORMATS } from '../../../../src/engine/formats/authorization/registry.ts'
import { CREDENTIAL_FORMATS } from '../../../../src/engine/formats/credential/registry.ts'
import type { Format } from '../../../../src/engine/formats/format.ts'
import { PAGINATION_FORMATS } from '../../../../src/engine/formats/pagination/registry.ts'
import { fieldRoles } from '../../../../src/engine/formats/schema-types.ts'
import { SIGNATURE_FORMATS } from '../../../../src/engine/formats/signature/registry.ts'
import { formatDotPath, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'

const lines = (config: JsonObject) =>
  checkConfig(config, 'integration', 'config').map(({ field, rule }) => `${field} ${rule}`)

describe('a path is a path', () => {
  const config = { cursor_key: 'c' }
  const keys: readonly [string, (path: string) => JsonObject][] = [
    ['cursor_path', (path) => ofPagination('cursor', { ...config, cursor_path: path })],
    ['prev_cursor_path', (path) => ofPagination('cursor', { ...config, cursor_path: 'n', prev_cursor_path: path })],
    ['has_next_path', (path) => ofPagination('cursor', { ...config, cursor_path: 'n', has_next_path: path })],
    ['cursor_from_last_record', (path) => ofPagination('cursor', { ...config, cursor_from_last_record: path })],
    ['cursor_key', (path) => ofPagination('cursor', { cursor_path: 'n', cursor_key: path, in: 'body' })],
    ['has_more_path', (path) => ofPagination('page', { page_key: 'p', has_more_path: path })],
    ['total_path', (path) => ofPagination('page', { page_key: 'p', total_path: path })],
    ['page_key', (path) => ofPagination('page', { page_key: path, in: 'body' })],
    ['offset_key', (path) => ofPagination('offset', { offset_key: path, in: 'body' })],
    ['limit_key', (path) => ofPagination('link_header', { limit_key: path, in: 'body' })],
    ['from_key', (path) => ofPagination('window', { ...WINDOW, from_key: path, in: 'body' })],
    ['to_key', (path) => ofPagination('window', { ...WINDOW, to_key: path, in: 'body' })],
    ['response_path', (path) => ({ resources: { a: { list: { path: '/', response_path: path } } } })],
    ['id_path', (path) => ({ resources: { a: { list: { path: '/', id_path: path } } } })],
    ['access_token', (path) => ({ credentials: { oauth2: { config: { token_response: { access_token: path } } } } })],
    ['from token', (path) => ({ credentials: { oauth2: { config: { context_from_token: { a: path } } } } })],
    [
      'a part of a signature',
      (path) => ({
        webhook: {
          signature_verification: {
            format: 'hash',
            config: { algorithm: 'sha256', parts: [`$payload.${path}`, '{{env.SECRET}}'], compare_with: '$header.x' },
          },
        },
      }),
    ],
  ]

  test.each(keys)('in %s', (_key, configWith) => {
    for (const path of ['a.b[0]', '["@odata.nextLink"].x', "meta['a.b']", '@odata.nextLink'])
      expect(lines(configWith(path))).toEqual([])
    for (const path of ['a..b', 'a[b]', '@odata\\.nextLink', 'meta["next', 'next page', '/a/b', '{{x}}'])
      expect(lines(configWith(path)), path).not.toEqual([])
  })

  test('and of a header the name of one', () => {
    const header = { cursor_path: 'next token', cursor_path_object: 'header', cursor_key: 'c d', in: 'header' }
    expect(lines(ofPagination('cursor', header))).toEqual([
      'config.pagination.config.cursor_key pagination.place',
      'config.pagination.config.cursor_path path',
    ])
  })
})

const WINDOW = { from_key: 'a', to_key: 'b', step: 'P1D', start: '2026-01-01' }

function ofPagination(format: string, config: JsonObject): JsonObject {
  return { pagination: { format, config } }
}

describe('a field that was collected', () => {
  const fields = [{ name: 'subdomain' }, { name: 'secret', type: 'password' }]
  const described = (text: string) =>
    checkConfig(
      { base_url: `https://${text}.example.com`, credentials: { api_key: { config: { fields } } } },
      'integration',
      'c',
    )
      .filter(({ rule }) => rule === 'placeholder.unknown_root')
      .map(({ description }) => description)

  test.each([
    '{{subdomain}}',
    '{{api_key.subdomain}}',
    '{{credentials.subdomain}}',
    '{{api_key}}',
    '{{credentials.oauth.x}}',
  ])('is known as %s', (text) => {
    expect(described(text)).toEqual([])
  })

  test.each(['{{subdomian}}', '{{api_key.subdomian}}', '{{credentials.subdomian}}'])('is suggested for %s', (text) => {
    expect(described(text)).toEqual([
      `uses ${text}, which no credential field provides, did you mean subdomain?; write {{context.subdomian}} for a key of the account's context`,
    ])
  })
})

describe('an expression starts from names that are there', () => {
  const page = (config: JsonObject) => ofPagination('page', { page_key: 'p', ...config })

  test.each<[string, JsonObject, string]>([
    [
      'error_expression',
      { error_expression: 'stauts >= 400' },
      'starts from stauts, which is not there, did you mean status?; there are response,',
    ],
    [
      'a method of its own',
      { resources: { a: { list: { path: '/', error_expression: 'error' } } } },
      'starts from error,',
    ],
    ['is_rate_limited', { rate_limit: { is_rate_limited: '$exists(bdy.code)' } }, 'did you mean body?'],
    ['retry after', { rate_limit: { retry_after_header_expression: 'header.x' } }, 'did you mean headers?'],
    [
      'rate limit headers',
      { rate_limit: { rate_limit_header_expression: '{"limit": headers."X-Limit"}' } },
      'lower-case here: "x-limit"',
    ],
    ['stop_expression', page({ stop_expression: 'pages > 3' }), 'did you mean page?'],
    ['has_more_expression', page({ has_more_expression: '$.next' }), 'starts from next,'],
    [
      'cursor_expression',
      ofPagination('cursor', { cursor_key: 'c', cursor_expression: '$map(records, function($r) { id })' }),
      'starts from id,',
    ],
    [
      'dynamic values',
      ofPagination('dynamic', { get_pagination_values_expression: '{"query": {"o": seen}}' }),
      'starts from seen,',
    ],
    [
      'first dynamic values',
      ofPagination('dynamic', {
        get_initial_pagination_values_expression: 'body',
        get_pagination_values_expression: 'null',
      }),
      'starts from body,',
    ],
    [
      'inside a window',
      ofPagination('window', { ...WINDOW, pagination: page({ stop_expression: 'cuont = 0' }).pagination ?? {} }),
      'did you mean count?',
    ],
    [
      'authorization',
      { authorization: { format: 'header', config: { expression: '{"x": environment.y}' } } },
      'starts from environment,',
    ],
    [
      'run_if',
      { actions: { a: { steps: [{ type: 'transform', config: '1', run_if: 'arg.x' }] } } },
      'did you mean args?',
    ],
    ['a transformation of payloads', { webhook: { payload_transform: 'payload.x' } }, 'starts from payload,'],
  ])('%s', (_what, config, said) => {
    const findings = checkConfig(config, 'integration', 'config')
    expect(findings.map(({ rule }) => rule)).toEqual(['expression.unknown_name'])
    expect(findings[0]?.description).toContain(said)
  })

  test('as the names of a pagination are in every expression of one', () => {
    const all =
      '[status, headers.link, body.x, records.id, count, last_record.id, url, limit, page, offset, cursor, total_seen, $$.page]'
    for (const key of ['stop_expression', 'has_more_expression']) expect(lines(page({ [key]: all }))).toEqual([])
    expect(lines(ofPagination('cursor', { cursor_key: 'c', cursor_expression: all }))).toEqual([])
    expect(
      lines(ofPagination('dynamic', { get_pagination_values_expression: `[${all}, query, paginationValues]` })),
    ).toEqual([])
  })
})

describe('a placeholder is allowed where it is evaluated', () => {
  test.each<[string, JsonObject, string]>([
    [
      'the name of a page parameter',
      ofPagination('page', { page_key: '{{context.k}}' }),
      'config.pagination.config.page_key',
    ],
    ['the name of a query parameter', { query: { '{{context.k}}': 1 } }, 'config.query["{{context.k}}"]'],
    [
      'a name in a body',
      { resources: { a: { list: { path: '/', body: { x: { '{{id}}': 1 } } } } } },
      'config.resources.a.list.body.x["{{id}}"]',
    ],
    [
      'a scope',
      { credentials: { oauth2: { config: { scope: ['{{context.s}}'] } } } },
      'config.credentials.oauth2.config.scope[0]',
    ],
  ])('not in %s', (_what, config, field) => {
    expect(lines(config)).toEqual([`${field} placeholder.no_effect`])
  })

  const kinds: readonly [string, readonly Format[], (choice: JsonObject) => JsonObject][] = [
    ['pagination', PAGINATION_FORMATS, (pagination) => ({ pagination })],
    ['authorization', AUTHORIZATION_FORMATS, (authorization) => ({ authorization })],
    [
      'credentials',
      CREDENTIAL_FORMATS,
      ({ format, config }) => ({ credentials: { [String(format)]: { config: config ?? null } } }),
    ],
    [
      'webhook.signature_verification',
      SIGNATURE_FORMATS,
      (signature_verification) => ({ webhook: { signature_verification } }),
    ],
  ]
  const leaves = kinds.flatMap(([kind, formats, place]) =>
    formats.flatMap(({ format, config }) =>
      literalLeaves(config).map(
        (path) =>
          [
            `${kind} ${format}`,
            path,
            (value: Json) => place({ format, config: nest(path, value) }),
            kind === 'credentials' ? `config.credentials.${format}.config` : `config.${kind}.config`,
          ] as const,
      ),
    ),
  )

  test('every setting of every format without placeholders rejects one', () => {
    expect(leaves.length).toBeGreaterThan(80)
    for (const [format, path, configWith, prefix] of leaves) {
      const fields = checkConfig(configWith('{{context.x}}'), 'integration', 'config').map(({ field }) => field)
      expect(fields, `${format} ${path.join('.')}`).toContain(formatDotPath(path, prefix))
    }
  })

  test('and texts for people may hold anything', () => {
    expect(lines({ label: '{{x}}', resources: { a: { list: { path: '/', description: 'Takes {{id}}.' } } } })).toEqual(
      [],
    )
  })
})

test('tags are those of resources that are there', () => {
  const [finding] = checkConfig({ tool_tags: { thing: ['a'] }, resources: { things: {} } }, 'integration', 'config')
  expect(finding).toMatchObject({ field: 'config.tool_tags.thing', rule: 'tool_tags.unknown_resource' })
  expect(finding?.description).toContain('did you mean things?')
})

test('a lifetime of tokens is a number of seconds', () => {
  const oauth2 = (tokenExpiryDuration: string) =>
    lines({ credentials: { oauth2: { config: { tokenExpiryDuration } } } })
  expect(oauth2('1h')).toEqual(['config.credentials.oauth2.config.tokenExpiryDuration pattern'])
  expect(oauth2('3600')).toEqual([])
})

/** The leaves of a schema that are neither templates nor texts for people. */
function literalLeaves(schema: z.core.$ZodType, depth = 0): (string | number)[][] {
  const role = fieldRoles.get(schema)?.kind
  if (role === 'template' || role === 'url' || role === 'prose' || depth > 12) return []
  const below = (child: z.core.$ZodType, ...step: (string | number)[]) =>
    literalLeaves(child, depth + 1).map((path) => [...step, ...path])
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'object':
      return Object.entries(def.shape).flatMap(([key, child]) => below(child, key))
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
      return below(def.innerType)
    case 'array':
      return below(def.element, 0)
    case 'string':
    case 'number':
    case 'boolean':
      return [[]]
    default:
      return []
  }
}

function nest(path: readonly (string | number)[], value: Json): Json {
  return path.reduceRight<Json>((inner, step) => (typeof step === 'number' ? [inner] : { [step]: inner }), value)
}
