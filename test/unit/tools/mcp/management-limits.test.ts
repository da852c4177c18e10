import { expect, it } from 'vitest'
import { startTestApp } from '../../../support/app.ts'

const LIMIT = 6
const app = await startTestApp({ PATCHBAY_RATE_LIMIT: String(LIMIT) })

async function callOnce(): Promise<Response> {
  return await fetch(`${app.url}/mcp/management?mode=direct`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${app.first.environmentToken}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_webhooks' } }),
  })
}

it('a call of a tool counts once against the rate limit of its token, as the same RPC does', async () => {
  const statuses: number[] = []
  for (let count = 0; count <= LIMIT; count++) statuses.push((await callOnce()).status)
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 429])
  const rpc = await fetch(`${app.url}/webhook`, {
    headers: { authorization: `Bearer ${app.first.environmentToken}` },
  })
  expect(rpc.status).toBe(429)
})
