import { describe, expect, test } from 'vitest'
import type { AccountAccess, ProxyRequest } from '../../../../src/engine/proxy/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import type { ScriptedExchange } from '../../../support/upstream.ts'
import { failureOf, on, startEngine } from './engine.ts'

const engine = await startEngine()

interface Row {
  readonly promise: string
  readonly config?: JsonObject
  readonly method: JsonObject
  readonly request?: Partial<ProxyRequest>
  readonly account?: Partial<AccountAccess>
  readonly sent: Omit<ScriptedExchange, 'answer'>
}

const answer = { json: { ok: true } }

async function callThing(row: Omit<Row, 'promise' | 'sent'>) {
  const config = { ...row.config, resources: { things: { do: row.method } } }
  return engine.call(config, { ...on('things', 'do'), ...row.request }, row.account)
}

describe('a request is built from the definition, the account and the caller', () => {
  test.each<Row>([
    {
      promise: 'method over integration, in any case of header names; null removes',
      config: {
        headers: { Accept: 'application/vnd.example+json', 'X-A': 'integration', 'X-B': 'b', 'X-C': 'c' },
        query: { v: '1', lang: 'en', gone: 'x' },
      },
      method: { path: '/x', headers: { 'x-a': 'method', 'X-B': null }, query: { v: '2', gone: null } },
      sent: {
        request: 'GET /x?v=2&lang=en',
        headers: {
          accept: 'application/vnd.example+json',
          'x-a': 'method',
          'x-b': null,
          'x-c': 'c',
          'user-agent': 'Patchbay',
        },
      },
    },
    {
      promise: 'the caller over the definition',
      method: { path: '/x', query: { state: 'open', page: 1 }, headers: { 'X-A': 'a' } },
      request: { query: { state: 'closed', extra: true }, headers: { 'x-A': 'caller' } },
      sent: { request: 'GET /x?state=closed&page=1&extra=true', headers: { 'x-a': 'caller' } },
    },
    {
      promise: 'what does not resolve is left out of query, headers and body',
      method: {
        method: 'post',
        path: '/x',
        query: { a: '{{query.a}}', b: 'b' },
        headers: { 'X-A': '{{context.a}}' },
        body: { a: '{{body.a}}', b: { c: '{{args.c}}' } },
      },
      sent: { request: 'POST /x?b=b', headers: { 'x-a': null }, body: { b: {} } },
    },
    {
      promise: 'a query parameter that the path reads is not sent a second time',
      method: { path: '/repos/{{query.owner}}/{{query.repo}}/issues' },
      request: { query: { owner: 'o w', repo: 'r', state: 'open' } },
      sent: { request: 'GET /repos/o%20w/r/issues?state=open' },
    },
    {
      promise: 'a query parameter that the definition renames is not sent under its old name',
      method: { path: '/x', query: { 'filter[status]': '{{query.status}}' } },
      request: { query: { status: 'open' } },
      sent: { request: 'GET /x?filter[status]=open' },
    },
    {
      promise: 'null of the caller is a value: it is sent beside what the definition has, also below',
      method: { method: 'POST', path: '/x', body: { sparse: true, kind: 'a', note: { lang: 'en' } } },
      request: { body: { due: null, kind: null, note: { text: null } } },
      sent: { request: 'POST /x', body: { sparse: true, kind: null, due: null, note: { lang: 'en', text: null } } },
    },
    {
      promise: 'a body that the caller sends is merged over the template, read fields aside',
      method: {
        method: 'POST',
        path: '/x',
        body: { source: 'patchbay', kind: 'a', person: { name: '{{body.name}}' } },
      },
      request: { body: { name: 'N', kind: 'b', person: { age: 3 } } },
      sent: { request: 'POST /x', body: { source: 'patchbay', kind: 'b', person: { name: 'N', age: 3 } } },
    },
    {
      promise: 'a body that the template takes whole is not merged again',
      method: { method: 'POST', path: '/x', body: { data: '{{body}}' } },
      request: { body: { a: 1 } },
      sent: { request: 'POST /x', body: { data: { a: 1 } } },
    },
    {
      promise: 'without a template the body is the caller’s, whatever its type',
      method: { method: 'PUT', path: '/x' },
      request: { body: [1, null, 'x'] },
      sent: { request: 'PUT /x', headers: { 'content-type': 'application/json' }, body: [1, null, 'x'] },
    },
    {
      promise: 'parent records, arguments and dates reach the request',
      method: {
        path: '/p/{{resources.crm.contacts.id}}',
        query: { since: '{{previous_run_date}}', kind: '{{args.kind}}' },
      },
      request: {
        resources: { crm: { contacts: { id: 0 } } },
        args: { kind: 'k' },
        previousRunDate: '2026-01-01T00:00:00.000Z',
      },
      sent: { request: 'GET /p/0?since=2026-01-01T00%3A00%3A00.000Z&kind=k' },
    },
    {
      promise: 'a form body is url-encoded with brackets',
      method: { method: 'POST', path: '/x', body_format: 'form' },
      request: { body: { a: 'x y', list: [1, 2], nested: { b: 'c' } } },
      sent: {
        request: 'POST /x',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: 'a=x%20y&list[]=1&list[]=2&nested[b]=c',
      },
    },
    {
      promise: 'a raw body is the text as it is, under the type that a header names',
      method: { method: 'POST', path: '/x', body_format: 'raw', headers: { 'Content-Type': 'text/csv' } },
      request: { body: 'a,b\n1,2' },
      sent: { request: 'POST /x', headers: { 'content-type': 'text/csv' }, body: 'a,b\n1,2' },
    },
    {
      promise: 'an XML body is one root element',
      method: { method: 'POST', path: '/x', body_format: 'xml' },
      request: { body: { order: { '@id': 7, item: ['a', 'b'] } } },
      sent: {
        request: 'POST /x',
        headers: { 'content-type': 'application/xml' },
        body: '<?xml version="1.0" encoding="UTF-8"?><order id="7"><item>a</item><item>b</item></order>',
      },
    },
    {
      promise: 'a multipart body carries fields, JSON parts and files',
      method: { method: 'POST', path: '/x', body_format: 'multipart' },
      request: {
        body: {
          a: 'x',
          j: { k: 1 },
          f: { filename: 'a".txt', content: 'aGk=', encoding: 'base64', content_type: 'text/plain' },
        },
      },
      sent: {
        request: 'POST /x',
        headers: { 'content-type': 'multipart/form-data; boundary=patchbay-n0nce' },
        body: [
          '--patchbay-n0nce',
          'Content-Disposition: form-data; name="a"',
          '',
          'x',
          '--patchbay-n0nce',
          'Content-Disposition: form-data; name="j"',
          'Content-Type: application/json',
          '',
          '{"k":1}',
          '--patchbay-n0nce',
          'Content-Disposition: form-data; name="f"; filename="a%22.txt"',
          'Content-Type: text/plain',
          '',
          'hi',
          '--patchbay-n0nce--',
          '',
        ].join('\r\n'),
      },
    },
    {
      promise: 'authorization in the query comes last and replaces a parameter of its name',
      config: {
        authorization: { format: 'query', config: { params: { key: '{{api_key}}' } } },
        query: { key: 'no', a: '1' },
      },
      method: { path: '/x?fixed=1' },
      account: { credentials: { api_key: 's&t' } },
      sent: { request: 'GET /x?fixed=1&a=1&key=s%26t' },
    },
    {
      promise: 'authorization goes over every other header',
      config: { authorization: { format: 'bearer' }, headers: { Authorization: 'wrong' } },
      method: { path: '/x' },
      request: { headers: { authorization: 'also wrong' } },
      account: { credentials: { api_key: 'k' } },
      sent: { request: 'GET /x', headers: { authorization: 'Bearer k' } },
    },
    {
      promise: 'authorization: null on a method sends none',
      config: { authorization: { format: 'bearer' } },
      method: { path: '/x', authorization: null },
      account: { credentials: { api_key: 'k' } },
      sent: { request: 'GET /x', headers: { authorization: null } },
    },
  ])('$promise', async (row) => {
    engine.upstream.script({ ...row.sent, answer })
    const outcome = await callThing(row)
    expect(outcome).toMatchObject({ kind: 'ok', status: 200, result: { ok: true } })
  })
})

describe('lists in the query are written as the definition says', () => {
  test.each<[string | undefined, Json, string]>([
    ['comma', [1, 'a,b'], 'a=1,a%2Cb'],
    ['brackets', [1, 2], 'a[]=1&a[]=2'],
    ['indices', [1, 2], 'a[0]=1&a[1]=2'],
    ['repeat', [1, 2], 'a=1&a=2'],
    [undefined, [1, 2], 'a=1&a=2'],
    ['indices', [{ b: 1 }], 'a[0][b]=1'],
    ['comma', { b: [1, 2], c: { d: true } }, 'a[b]=1,2&a[c][d]=true'],
  ])('%s %j', async (format, value, query) => {
    engine.upstream.script({ request: `GET /x?${query}`, answer })
    const method = { path: '/x', query: { a: value } }
    const outcome = await callThing({
      method: format === undefined ? method : { ...method, query_array_format: format },
    })
    expect(outcome.kind).toBe('ok')
  })

  test('empty lists and null are not sent', async () => {
    engine.upstream.script({ request: 'GET /x', answer })
    const outcome = await callThing({ method: { path: '/x' }, request: { query: { a: [], b: null } } })
    expect(outcome.kind).toBe('ok')
  })
})

describe('what cannot be sent is rejected before anything is sent', () => {
  test.each<[string, Omit<Row, 'promise' | 'sent'>, string]>([
    [
      'a missing path value',
      { method: { path: '/x/{{id}}' } },
      'PLACEHOLDER_UNRESOLVED: the placeholder {{id}} has no value',
    ],
    ['a path value that climbs', { method: { path: '/x/{{id}}/y' }, request: { id: '..' } }, 'PLACEHOLDER_UNRESOLVED'],
    [
      'a line break in a header',
      { method: { path: '/x', headers: { 'X-A': '{{args.a}}' } }, request: { args: { a: 'a\r\nX-Evil: 1' } } },
      'PLACEHOLDER_UNRESOLVED: the value of the header x-a',
    ],
    [
      'half a credential',
      { config: { authorization: { format: 'bearer' } }, method: { path: '/x' } },
      'PLACEHOLDER_UNRESOLVED',
    ],
    [
      'a form that is not an object',
      { method: { method: 'POST', path: '/x', body_format: 'form' }, request: { body: 'x' } },
      'INVALID_FIELD',
    ],
    ['a definition without address', { config: { base_url: null }, method: { path: '/x' } }, 'DEFINITION_INVALID'],
  ])('%s', async (_what, row, rejection) => {
    expect(await failureOf(callThing(row))).toContain(rejection)
    expect(engine.upstream.requests).toEqual([])
  })
})
