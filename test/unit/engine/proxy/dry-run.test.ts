import { generateKeyPairSync } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { AUTHORIZATION_FORMATS } from '../../../../src/engine/formats/authorization/registry.ts'
import type {
  AccountAccess,
  AccountReporter,
  CallLimiter,
  CredentialRefresher,
  PreviewRequest,
} from '../../../../src/engine/proxy/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { failureOf, on, startEngine } from './engine.ts'

const untouched = () => {
  throw new Error('a preview leaves accounts and callLimiter alone')
}
const accountPort: CredentialRefresher & AccountReporter = {
  refresh: untouched,
  report: untouched,
  updateContext: untouched,
}
const callLimiter: CallLimiter = { acquire: untouched, observe: untouched }
const engine = await startEngine({ credentialRefresher: accountPort, accountReporter: accountPort, callLimiter })
afterEach(() => expect(engine.upstream.requests).toEqual([]))

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const PEM = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

/** Secrets that stand in a request as they are, and percent-encoded, and escaped in JSON. */
const CANARY = 'c4n4ry/+="&é key'
const OTHER = 'CANARY_2'

const GET = on('things', 'get')
const THING = { resources: { things: { get: { path: '/things/1' } } } }
const account = (credentials: JsonObject): Partial<AccountAccess> => ({ credentials })

/** Every way of writing the secret that a reader could turn back. */
function traces(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const xml = secret.replace('&', '&amp;').replaceAll('"', '&quot;')
  const json = JSON.stringify(secret).slice(1, -1)
  return [
    secret,
    json,
    xml,
    xml.replace('&quot;', '"'),
    encodeURIComponent(secret),
    encodeURIComponent(json),
    ...encodings(bytes),
  ]
}

function encodings(bytes: Buffer): string[] {
  return [bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex')]
}

async function previewText(config: JsonObject, request: PreviewRequest, access?: Partial<AccountAccess>) {
  const shown = await engine.preview(config, request, access)
  return { shown, text: JSON.stringify(shown) }
}

describe('everything that authorization adds to a request is masked', () => {
  interface Row {
    readonly config?: JsonObject
    readonly credentials?: JsonObject
    readonly authorization?: string
    readonly url?: string
    readonly headers?: Readonly<Record<string, string>>
  }
  const rows: Readonly<Record<string, readonly Row[]>> = {
    bearer: [
      { authorization: 'Bearer ***' },
      {
        credentials: { oauth: { token: { access_token: CANARY, token_type: 'Bearer' } } },
        authorization: 'Bearer ***',
      },
    ],
    basic: [{ config: { username: '{{api_key}}', password: '{{password}}' }, authorization: 'Basic ***' }],
    header: [
      { config: { header_name: 'X-Key', header_value: 'k {{api_key}}' }, headers: { 'x-key': '***' } },
      { config: { headers: { 'X-A': '{{api_key}}', 'X-B': '{{password}}' } }, headers: { 'x-a': '***', 'x-b': '***' } },
      { config: { header_name: 'Authorization', header_value: '{{api_key}}' }, authorization: '***' },
      {
        config: {
          expression: '{"authorization": "Mac " & $base64encode(credentials.password), "x-s": $uppercase(url)}',
        },
        authorization: 'Mac ***',
        headers: { 'x-s': '***' },
      },
    ],
    query: [{ config: { params: { key: '{{api_key}}', both: 'a{{password}}' } }, url: '?key=***&both=***' }],
    oauth1: [
      {
        config: { consumer_key: '{{password}}', consumer_secret: '{{api_key}}', token: 't', token_secret: 's' },
        authorization: 'OAuth ***',
      },
    ],
    aws_sigv4: [
      {
        config: {
          access_key_id: '{{password}}',
          secret_access_key: '{{api_key}}',
          session_token: '{{api_key}}',
          region: 'eu-central-1',
          service: 's3',
        },
        authorization: 'AWS4-HMAC-SHA256 ***',
        headers: { 'x-amz-security-token': '***' },
      },
    ],
    jwt: [
      {
        config: { algorithm: 'HS256', key: '{{api_key}}', claims: { iss: '{{password}}' } },
        authorization: 'Bearer ***',
      },
      { config: { algorithm: 'RS256', key: '{{pem}}' }, credentials: { pem: PEM }, authorization: 'Bearer ***' },
    ],
    // Sent for the challenge.
    digest: [{ config: { username: 'u', password: '{{api_key}}' } }],
    none: [{}],
  }
  const plain: Readonly<Record<string, JsonObject>> = {
    aws_sigv4: { api_key: 'c4n4ry-key', password: OTHER },
  }

  test.each(AUTHORIZATION_FORMATS.map(({ format }) => format))('%s', async (format) => {
    const cases = rows[format] ?? []
    expect(cases.length).toBeGreaterThan(0)
    for (const { config, credentials, authorization, url, headers } of cases) {
      const given = credentials ?? plain[format] ?? { api_key: CANARY, password: OTHER }
      const choice = config === undefined ? { format } : { format, config }
      const { shown, text } = await previewText({ ...THING, authorization: choice }, GET, account(given))
      if (authorization !== undefined) expect(shown.headers.authorization).toBe(authorization)
      expect(shown.headers).toMatchObject(headers ?? {})
      expect(shown.url).toBe(`${engine.upstream.url}/things/1${url ?? ''}`)
      for (const secret of [CANARY, OTHER, 'c4n4ry-key', PEM].flatMap(traces)) expect(text).not.toContain(secret)
    }
  })
})

describe('a secret is masked wherever a template puts it', () => {
  const both = { api_key: CANARY, account: JSON.stringify({ private: OTHER, n: [CANARY] }) }

  test.each<[string, JsonObject]>([
    ['path', { path: '/things/{{api_key}}' }],
    ['query', { path: '/x', query: { k: '{{api_key}}', list: ['{{api_key}}'], o: { '{{api_key}}': 1 } } }],
    ['header', { path: '/x', headers: { 'X-A': 'a {{account}}' } }],
    ['JSON body', { method: 'POST', path: '/x', body: { a: { b: '{{api_key}}' }, c: 'x {{api_key}}' } }],
    ['path, by the root', { path: '/things/{{api_key.api_key}}' }],
    ['header, by the root', { path: '/x', headers: { 'X-A': 'a {{api_key.account}}' } }],
    ['whole credentials', { method: 'POST', path: '/x', body: { all: '{{credentials.account:json}}' } }],
    ['form', { method: 'POST', path: '/x', body: { a: '{{api_key}} {{account}}' }, body_format: 'form' }],
    ['multipart', { method: 'POST', path: '/x', body: { a: '{{api_key}}' }, body_format: 'multipart' }],
    ['XML', { method: 'POST', path: '/x', body: { a: { '@k': '{{api_key}}', b: '{{api_key}}' } }, body_format: 'xml' }],
    ['text', { method: 'POST', path: '/x', body: 'key={{api_key}}', body_format: 'raw' }],
  ])('%s', async (_place, method) => {
    const { shown, text } = await previewText({ resources: { things: { get: method } } }, GET, account(both))
    for (const secret of [CANARY, OTHER].flatMap(traces)) expect(text).not.toContain(secret)
    expect(`${shown.url} ${shown.headers['x-a']} ${shown.body}`).toContain('***')
  })

  const TOKEN = {
    access_token: CANARY,
    id_token: OTHER,
    session: 'a-session',
    tenant: { api_key: 'an-api-key', id: 42 },
    instance_url: 'https://acme.example/base/',
    api_version: 'v1',
    expires_in: 7200,
    x_refresh_token_expires_in: 8726400,
    token_type: 'Bearer',
  }

  test.each<[string, JsonObject, string]>([
    ['its address', { base_url: '{{oauth.token.instance_url}}' }, 'https://acme.example/base/items'],
    ['a version', { path: '/{{oauth.token.api_version}}/{{oauth.token.expires_in}}' }, '/v1/7200'],
    ['an id', { path: '/{{oauth.token.tenant.id}}' }, '/42'],
    ['a name', { path: '/{{oauth.token.token_type}}' }, '/Bearer'],
    ['the end of a token', { path: '/{{oauth.token.x_refresh_token_expires_in}}' }, '/8726400'],
    ['the token', { path: '/{{oauth.token.access_token}}' }, '/***'],
    ['another token', { path: '/{{oauth.token.id_token}}' }, '/***'],
    ['a key', { path: '/{{oauth.token.tenant.api_key}}' }, '/***'],
    ['what is sent as credential', { path: '/x', query: { s: '{{oauth.token.session}}' } }, '/x?s=***'],
  ])('of a token response %s', async (_what, { base_url, ...method }, expected) => {
    const config = {
      ...(base_url === undefined ? {} : { base_url }),
      resources: { things: { get: { path: '/items', ...method } } },
    }
    const { url } = await engine.preview(config, GET, account({ oauth: { token: TOKEN } }))
    expect(url.replace(engine.upstream.url, '')).toBe(expected)
  })

  test('a short one only as a separate word', async () => {
    const config = { resources: { things: { get: { path: '/pin/{{pin}}/pining/12' } } } }
    const shown = await engine.preview(config, GET, account({ pin: '12', letter: 'p' }))
    expect(shown.url).toBe(`${engine.upstream.url}/pin/***/pining/***`)
  })

  test('secrets of the definition and of the environment too, other values not', async () => {
    const config = {
      ...THING,
      headers: { 'X-Api-Key': OTHER, 'X-Region': '{{env.REGION}}', 'X-Env': '{{env.API_SECRET}}' },
    }
    const environmentVariables = { REGION: 'eu-1', API_SECRET: 'CANARY_3' }
    const { shown } = await previewText(config, GET, { environmentVariables, context: { region: 'x' } })
    expect(shown.headers).toMatchObject({ 'x-api-key': '***', 'x-region': 'eu-1', 'x-env': '***' })
  })
})

describe('a preview shows what a call would do', () => {
  test('the request, whether it writes, and how often it is sent', async () => {
    const create = { method: 'POST', path: '/things', query: { v: 2 }, body: { kind: 'a', name: '{{body.name}}' } }
    const config = { retry: { max_attempts: 4 }, resources: { things: { create, get: { path: '/things/{{id}}' } } } }
    const shown = await engine.preview(config, { ...on('things', 'create'), body: { name: 'N' } })
    expect(shown).toMatchObject({
      method: 'POST',
      url: `${engine.upstream.url}/things?v=2`,
      body: '{"kind":"a","name":"N"}',
      isWrite: true,
      attemptsMax: 1,
      paging: undefined,
      outcome: undefined,
    })
    expect(shown.headers).toMatchObject({ 'content-type': 'application/json', accept: 'application/json' })
    expect(await engine.preview(config, { ...GET, id: 1 })).toMatchObject({ isWrite: false, attemptsMax: 4 })
  })

  test('or why it would be rejected', async () => {
    expect(await failureOf(engine.preview(THING, on('things', 'drop')))).toContain('METHOD_NOT_DEFINED')
    const bearer = { ...THING, authorization: { format: 'bearer' } }
    expect(await failureOf(engine.preview(bearer, GET))).toContain('PLACEHOLDER_UNRESOLVED')
  })

  test('of a write through a sandbox account with the error that the call would have', async () => {
    const write = { target: { kind: 'path', verb: 'POST', path: '/x' } } as const
    const { error } = await engine.preview({}, write, { isSandbox: true })
    expect(error).toMatchObject({ reason: 'SANDBOX_ACCOUNT_READ_ONLY' })
  })

  test('of a list, how it is paged and why it would end, in order', async () => {
    const config = {
      error_expression: '$boolean(body.error) ? {"status": 400}',
      pagination: {
        format: 'cursor',
        config: {
          cursor_path: 'next',
          cursor_key: 'c',
          limit: 50,
          limit_key: 'n',
          max_limit: 20,
          has_more_path: 'meta.more',
          stop_expression: 'count > 9',
          stop_on_short: true,
          max_pages: 3,
        },
      },
      resources: { things: { list: { path: '/things' } } },
    }
    const shown = await engine.preview(config, on('things', 'list'))
    expect(shown.url).toBe(`${engine.upstream.url}/things?n=20`)
    expect(shown.paging).toEqual({
      format: 'cursor',
      limit: 20,
      stops: [
        { reason: 'error_ignored', when: 'error_expression answers with the action "ignore"' },
        { reason: 'error_stopped', when: 'error_expression answers with the action "stop"' },
        { reason: 'expression', when: 'stop_expression is true of the page' },
        { reason: 'has_more_false', when: 'body.meta.more is a no: false, 0 or "no"' },
        { reason: 'short_page', when: 'a page has fewer records than were asked for' },
        { reason: 'no_cursor', when: 'the page names no next cursor' },
        {
          reason: 'cursor_repeated',
          when: 'the page leads to where it was asked for, and asked again holds the same records',
        },
        { reason: 'max_pages', when: '3 pages were read' },
      ],
    })
  })

  test('of a list that is not paged, that it is one page', async () => {
    const config = { resources: { things: { list: { path: '/things' } } } }
    const { paging } = await engine.preview(config, on('things', 'list'))
    expect(paging).toMatchObject({ format: null, stops: [{ reason: 'unpaginated' }] })
  })
})

describe('a sample response is simulated', () => {
  const CONFIG = {
    authorization: { format: 'query', config: { params: { key: '{{api_key}}' } } },
    error_expression: 'body.ok = false ? {"status": 422, "message": body.error, "metadata": {"code": 7}}',
    rate_limit: { is_rate_limited: 'headers."x-left" = "0"' },
    pagination: { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'cursor' } },
    resources: {
      things: {
        get: { path: '/things/1', response_path: 'data', examples: { response: { data: { id: 1 } } } },
        list: { path: '/things', response_path: 'data' },
      },
    },
  }
  const outcomeOf = async (request: PreviewRequest) =>
    (await engine.preview(CONFIG, request, account({ api_key: OTHER }))).outcome
  const ok = (body: Json) => ({ status: 200, headers: {}, body })

  test.each<[string, PreviewRequest, object]>([
    ['the example of the definition', GET, { kind: 'ok', result: { id: 1 } }],
    ['a sample instead of it', { ...GET, sample: ok({ data: 2 }) }, { kind: 'ok', result: 2 }],
    [
      'an error in a success',
      { ...GET, sample: ok({ ok: false, error: 'no' }) },
      { kind: 'upstream_error', result: { status: 422, message: 'no', metadata: { code: 7 }, action: 'fail' } },
    ],
    [
      'a rate limit, header names in any case',
      { ...GET, sample: { status: 200, headers: { 'X-Left': '0', 'Retry-After': '9' }, body: null } },
      { kind: 'rate_limited', result: { status: 200, retry_after: 9 } },
    ],
    [
      'the last page',
      { ...on('things', 'list'), sample: ok({ data: [1, 2] }) },
      { kind: 'ok', result: [1, 2], recordCount: 2, stopReason: 'no_cursor', next: undefined },
    ],
  ])('%s', async (_what, request, outcome) => {
    expect(await outcomeOf(request)).toEqual(outcome)
  })

  test('and leads to the request for the next page, masked like the first', async () => {
    const outcome = await outcomeOf({ ...on('things', 'list'), sample: ok({ data: [1], next: 'abc' }) })
    expect(outcome).toMatchObject({
      recordCount: 1,
      stopReason: undefined,
      next: { method: 'GET', url: `${engine.upstream.url}/things?cursor=abc&key=***` },
    })
  })

  test('a cursor that was never issued is rejected as in a call', async () => {
    const request = { ...on('things', 'list'), page: { cursor: 'nonsense' } }
    expect(await failureOf(outcomeOf(request))).toContain('PAGE_TOKEN_INVALID')
  })
})
