import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { API_KEY, startToolServerFixture } from '../servers/fixture.ts'
import { connectClient, ERAS } from './client.ts'

const COUNT = 250

/** A definition with many described resources, the last one writable. */
function manyResources(baseUrl: string): JsonObject {
  const resources = Array.from({ length: COUNT }, (_, at): [string, JsonObject] => {
    const list = { path: `/r${at}`, description: `Lists records of kind ${at}.` }
    return [
      `kind${at}`,
      at === COUNT - 1 ? { list, create: { method: 'POST', path: '/r', description: 'Creates.' } } : { list },
    ]
  })
  return {
    label: 'Many',
    base_url: baseUrl,
    credentials: {
      api_key: { config: { fields: [{ name: 'api_key', label: 'Key', type: 'password', required: true }] } },
    },
    resources: Object.fromEntries(resources),
  }
}

const { createServer } = await startToolServerFixture({ define: manyResources, credentials: { api_key: API_KEY } })

describe.each(ERAS)('a server of %s clients with many tools', (era) => {
  it('lists them in pages, each tool once', async () => {
    const client = await connectClient(await createServer({ mode: 'direct' }), era)
    const { tools } = await client.listTools()
    expect(new Set(tools.map(({ name }) => name)).size).toBe(COUNT)
    expect(tools).toHaveLength(COUNT)
  })

  it.each<[JsonObject, number]>([
    [{}, 3],
    [{ is_read_only: false }, COUNT + 1],
    [{ is_read_only: false, allow_search_writes: true }, 3],
    [{ filter: { resources: ['kind1', 'kind2'] } }, 2],
    [{ mode: 'direct' }, COUNT],
  ])('shows with %j as many tools as %i', async (settings, count) => {
    const client = await connectClient(await createServer(settings), era)
    expect((await client.listTools()).tools).toHaveLength(count)
  })
})

describe('the first page', () => {
  it('names the cursor of the next, and the last page none', async () => {
    const { url, token } = await createServer({ mode: 'direct', limits: { requests_per_minute: 1_000 } })
    const ask = async (params: JsonObject) => {
      const answer = await fetch(url, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params }),
      })
      const text = await answer.text()
      return JSON.parse(text.slice(text.indexOf('{'))).result
    }
    const first = await ask({})
    expect(first.tools).toHaveLength(100)
    const last = await ask({ cursor: (await ask({ cursor: first.nextCursor })).nextCursor })
    expect([last.tools.length, last.nextCursor]).toEqual([COUNT - 200, undefined])
  })
})
