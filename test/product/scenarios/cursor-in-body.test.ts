import { expect, test } from 'vitest'
import type { JsonObject } from '../../../src/foundation/json/index.ts'
import { startScenario } from './scenario.ts'

const scenario = await startScenario()
const upstream = await scenario.upstream()

/** GraphQL: one address, the cursor among the variables of the body, errors in answers of status 200. */
const DEFINITION: JsonObject = {
  base_url: upstream.url,
  credentials: { api_key: { config: {} } },
  authorization: { format: 'header', config: { header_name: 'authorization', header_value: '{{api_key}}' } },
  error_expression: '$exists(body.errors) ? {"status": 422, "message": body.errors[0].message}',
  resources: {
    issues: {
      list: {
        method: 'POST',
        path: '/graphql',
        body: { query: 'query($after: String) { issues(after: $after) { nodes { id } pageInfo { endCursor } } }' },
        response_path: 'data.issues.nodes',
        pagination: {
          format: 'cursor',
          config: {
            cursor_path: 'data.issues.pageInfo.endCursor',
            has_next_path: 'data.issues.pageInfo.hasNextPage',
            cursor_key: 'variables.after',
            limit_key: 'variables.first',
            limit: 2,
            in: 'body',
          },
        },
      },
    },
  },
}
const QUERY = (DEFINITION.resources as never as Record<string, Record<string, { body: JsonObject }>>).issues?.list?.body
  .query
const account = await scenario.connect(DEFINITION, { api_key: 'lin_1' })

const page = (ids: readonly number[], endCursor: string | null, hasNextPage: boolean) => ({
  json: { data: { issues: { nodes: ids.map((id) => ({ id })), pageInfo: { endCursor, hasNextPage } } } },
})
const asked = (variables: JsonObject) => ({
  request: 'POST /graphql',
  headers: { authorization: 'lin_1' },
  body: { query: QUERY, variables } as JsonObject,
})

test('a cursor travels in the body from page to page, and the caller only sees next_cursor', async () => {
  upstream.script(
    { ...asked({ first: 2 }), answer: page([1, 2], 'c1', true) },
    { ...asked({ first: 2, after: 'c1' }), answer: page([3], 'c2', false) },
  )
  const first = await account.call('GET', '/proxy/issues')
  expect(first.json).toEqual({ result: [{ id: 1 }, { id: 2 }], next_cursor: expect.any(String) })
  const last = await account.call('GET', `/proxy/issues?next_cursor=${first.json.next_cursor}`)
  expect(last.json).toEqual({ result: [{ id: 3 }], stop_reason: 'has_more_false' })
})

test('an error inside an answer of status 200 is an error', async () => {
  upstream.script({
    ...asked({ first: 2 }),
    answer: { json: { data: null, errors: [{ message: 'Field "nope" does not exist' }] } },
  })
  const { status, reason, json } = await account.call('GET', '/proxy/issues')
  expect([status, reason]).toEqual([422, 'UPSTREAM_ERROR'])
  expect(JSON.stringify(json)).toContain('Field \\"nope\\" does not exist')
})

test('a limit that ends at a date is answered with the seconds until then', async () => {
  const date = new Date(Date.now() + 90_000).toUTCString()
  upstream.script({ ...asked({ first: 2 }), answer: { status: 429, json: {}, headers: { 'retry-after': date } } })
  const { status, reason, headers } = await account.call('GET', '/proxy/issues')
  expect([status, reason]).toEqual([429, 'UPSTREAM_RATE_LIMITED'])
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(80)
  expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(90)
})
