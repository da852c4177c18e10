import { describe, expect, it } from 'vitest'
import { startToolServerFixture } from '../tool-servers/fixture.ts'
import { connectClient, ERAS } from './client.ts'

const fixture = await startToolServerFixture()
const { upstream } = fixture

describe.each(ERAS)('a client of the %s handshake', (era) => {
  it('lists the tools of a read-only server', async () => {
    const client = await connectClient(await fixture.createServer(), era)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['get_contact', 'list_contacts', 'search_contacts', 'headcount'])
  })

  it('calls a list', async () => {
    const client = await connectClient(await fixture.createServer(), era)
    upstream.script({
      request: 'GET /contacts?workspace=w1&per_page=2',
      answer: {
        json: {
          items: [
            { id: 1, name: 'Ada', n: 5 },
            { id: 2, name: 'Bo' },
          ],
          next: 'c2',
        },
      },
    })
    await client.callTool({ name: 'list_contacts', arguments: { limit: 2, fields: ['name'] } })
  })
})
