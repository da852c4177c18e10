import { expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { startToolServerFixture } from '../servers/fixture.ts'

const fixture = await startToolServerFixture()

/** Method, path and body of what ends a call through a server and an account. */
type Ending = (serverId: string, accountId: string) => readonly [verb: string, path: string, body?: JsonObject]

const ENDINGS: Readonly<Record<string, Ending>> = {
  'the rotation of its token': (id) => ['POST', `/tool-server/${id}/rotate-token`, {}],
  'the disabling of its server': (id) => ['PATCH', `/tool-server/${id}`, { is_enabled: false }],
  'the deletion of its server': (id) => ['DELETE', `/tool-server/${id}`],
  'the deletion of its account': (_, id) => ['DELETE', `/integrated-account/${id}`],
}

it.each(Object.entries(ENDINGS))('a call of a tool in progress is broken off with %s', async (_, ending) => {
  const accountId = await fixture.addAccount('acme')
  const { id, url, token } = await fixture.createServer({ integrated_account_id: accountId })
  fixture.upstream.script({ request: 'GET /contacts/7', answer: { hang: true } })
  const params = { name: 'get_contact', arguments: { id: '7' } }
  const answer = fetch(url, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
    },
  })
  const ended = expect(answer.then((response) => response.text())).rejects.toThrow()
  await expect.poll(() => fixture.upstream.requests.length).toBe(1)
  await fixture.call(...ending(id, accountId))
  await ended
})
