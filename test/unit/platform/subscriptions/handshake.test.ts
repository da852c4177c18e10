import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { updateContextFromWebhook } from '../../../../src/platform/accounts/index.ts'
import { isSubscribing } from '../../../../src/platform/subscriptions/index.ts'
import { subscriptionsFixture } from './fixture.ts'

/** The address of the account: a server of this process, as the third party reaches it. */
const address = createServer((request, response) => {
  void serve(request).then(({ status, headers, body }) => response.writeHead(status, headers).end(body))
})
const publicUrl = await listen(address)
const fixture = await subscriptionsFixture(publicUrl)
const { database, tx, deps, refOf, worker, subscribeTo, only } = fixture

/** A third party that calls the address before it answers the request which names it. */
const thirdParty = createServer((request, response) => {
  void create(request).then(({ status, json }) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
  })
})
const thirdPartyUrl = await listen(thirdParty)
afterAll(() => {
  for (const server of [address, thirdParty]) server.closeAllConnections()
  for (const server of [address, thirdParty]) server.close()
})

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** What was seen while a create request was open. */
const seen: JsonObject[] = []

/** Answers a handshake as the definitions of Asana and Microsoft Graph do, and stores what it brings in a transaction. */
async function serve(request: IncomingMessage) {
  const url = new URL(request.url ?? '', publicUrl)
  const id = url.pathname.split('/').at(-1) ?? ''
  seen.push({ status: (await only(id)).status, isSubscribing: await isSubscribing(tx, refOf(id)) })
  const secret = request.headers['x-hook-secret']
  if (typeof secret === 'string') {
    const change = { values: { hook_secret: secret }, secretKeys: ['hook_secret'], inboundEventId: newId() }
    await database.transaction((each) => updateContextFromWebhook(deps, each, refOf(id), change))
    return { status: 200, headers: { 'x-hook-secret': secret }, body: '' }
  }
  return { status: 200, headers: { 'content-type': 'text/plain' }, body: url.searchParams.get('validationToken') ?? '' }
}

/** Creates a subscription when the address proves itself: with a header at `/asana`, a parameter at `/graph`. */
async function create(request: IncomingMessage): Promise<{ status: number; json: JsonObject }> {
  const { target } = JSON.parse(await text(request)) as { target: string }
  if (request.url === '/asana') {
    const answer = await fetch(target, { method: 'POST', headers: { 'x-hook-secret': 'agreed' } })
    return answer.headers.get('x-hook-secret') === 'agreed'
      ? { status: 201, json: { data: { gid: 'asana-1' } } }
      : { status: 400, json: { errors: [{ message: 'the handshake failed' }] } }
  }
  const answer = await fetch(`${target}?validationToken=token%20with%20blanks`, { method: 'POST' })
  return (await answer.text()) === 'token with blanks'
    ? { status: 201, json: { id: 'graph-1', expirationDateTime: new Date(Date.now() + 3_600_000).toISOString() } }
    : { status: 400, json: { error: { message: 'validation failed' } } }
}

function block(path: string, id: string): JsonObject {
  const config = { method: 'POST', base_url: thirdPartyUrl, path, body: { target: '{{connection.webhook_url}}' } }
  return { create: { type: 'request', config }, id }
}

describe('a third party that calls back while the request is open', () => {
  it.each([
    ['a secret in a header, which is stored meanwhile (Asana)', '/asana', 'result.data.gid', 'asana-1'],
    ['a parameter to be repeated (Microsoft Graph)', '/graph', 'result.id', 'graph-1'],
  ])('gets its answer: %s', async (_what, path, idExpression, externalId) => {
    seen.length = 0
    const { id } = await subscribeTo(block(path, idExpression))
    expect(await isSubscribing(tx, refOf(id))).toBe(false)
    await worker().runOnce()
    expect(seen).toEqual([{ status: 'creating', isSubscribing: true }])
    expect(await only(id)).toMatchObject({ status: 'active', externalId, error: '' })
    expect(await isSubscribing(tx, refOf(id))).toBe(false)
    const { credentials } = (await fixture.load(id)).access
    if (path === '/asana') expect(credentials).toMatchObject({ webhook: { hook_secret: 'agreed' } })
  })

  it('is served with one database connection to spare', async () => {
    const { id } = await subscribeTo(block('/asana', 'result.data.gid'))
    // A transaction that were open during the request would hold the row that the handshake locks, and both would wait.
    expect(await Promise.all([worker().runOnce(), worker().runOnce()])).toContain(true)
    expect(await only(id)).toMatchObject({ status: 'active' })
  })
})
