import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { startScenario } from './scenario.ts'

const scenario = await startScenario()
const upstream = await scenario.upstream()
const SECRET = 'the-secret-of-acme'

/** Every request is signed over its method, address and body by an expression. */
const account = await scenario.connect(
  {
    base_url: upstream.url,
    credentials: {
      api_key: {
        config: {
          fields: [
            { name: 'key_id', type: 'text', required: true },
            { name: 'secret', type: 'password', required: true },
          ],
        },
      },
    },
    authorization: {
      format: 'header',
      config: {
        expression:
          '{"x-key": credentials.key_id, "x-signature": $hmac(request.method & " " & url & " " & (request.body ? request.body : ""), credentials.secret)}',
      },
    },
    resources: {
      orders: {
        get: { path: '/orders/{{id}}' },
        create: { method: 'POST', path: '/orders', query: { notify: 'all' } },
        delete: {
          method: 'DELETE',
          path: '/orders/{{id}}',
          error_expression: 'status = 404 ? {"status": 200, "result": {"deleted": true, "was_there": false}}',
        },
      },
    },
  },
  { key_id: 'ak_1', secret: SECRET },
)

/** The signature as the third party would compute it. */
function signature(method: string, path: string, body = ''): string {
  return createHmac('sha256', SECRET).update(`${method} ${upstream.url}${path} ${body}`).digest('hex')
}

test('an expression signs the request as it is sent, query and body included', async () => {
  const body = { amount: 5 }
  upstream.script({
    request: 'POST /orders?notify=all',
    headers: { 'x-key': 'ak_1', 'x-signature': signature('POST', '/orders?notify=all', JSON.stringify(body)) },
    body,
    answer: { status: 201, json: { id: 'o1' } },
  })
  expect((await account.call('POST', '/proxy/orders', body)).json).toEqual({ result: { id: 'o1' } })
})

test('what a definition does not call an error is a success, with the result it says', async () => {
  upstream.script({
    request: 'DELETE /orders/o9',
    headers: { 'x-signature': signature('DELETE', '/orders/o9') },
    answer: { status: 404, json: { message: 'no such order' } },
  })
  const { status, json } = await account.call('DELETE', '/proxy/orders/o9')
  expect([status, json]).toEqual([200, { result: { deleted: true, was_there: false } }])
})

test('a dry run shows the request and neither sends it nor shows what signs it', async () => {
  const { status, json } = await account.call('POST', '/proxy/orders?dry_run=true', { amount: 5 })
  expect(status).toBe(200)
  expect(json.dry_run).toMatchObject({ method: 'POST', url: `${upstream.url}/orders?notify=all` })
  const text = JSON.stringify(json)
  expect(text).not.toContain(SECRET)
  expect(text).not.toContain(signature('POST', '/orders?notify=all', JSON.stringify({ amount: 5 })))
})

test('credentials are in no answer', async () => {
  expect(JSON.stringify(await account.read())).not.toContain(SECRET)
})
