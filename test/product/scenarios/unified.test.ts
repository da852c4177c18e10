import { expect, test } from 'vitest'
import type { ScriptedExchange } from '../../support/upstream.ts'
import { startScenario } from './scenario.ts'

const scenario = await startScenario()
const upstream = await scenario.upstream()

/** Tokens of client credentials, which the third party may end at any time. */
const DEFINITION = {
  base_url: upstream.url,
  credentials: {
    oauth2_client_credentials: { config: { auth: { tokenHost: upstream.url, tokenPath: '/token' } } },
  },
  authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token}}' } },
  resources: {
    people: {
      list: {
        path: '/people',
        response_path: 'items',
        pagination: { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'after' } },
      },
      create: { method: 'POST', path: '/people' },
    },
  },
}

const MAPPING = {
  resource: 'people',
  method: 'list',
  response: { fields: { id: 'key', first_name: 'given', name: '$trim(given & " " & family)' } },
}

const token = (value: string): ScriptedExchange => ({
  request: 'POST /token',
  answer: { json: { access_token: value, token_type: 'bearer', expires_in: 3600 } },
})
const people = (authorization: string, query = ''): Omit<ScriptedExchange, 'answer'> => ({
  request: `GET /people${query}`,
  headers: { authorization: `Bearer ${authorization}` },
})

upstream.script(token('t1'))
const account = await scenario.connect(DEFINITION, { client_id: 'c', client_secret: 's' })
const stored = await account.request('POST', '/unified-mapping', {
  integrated_account_id: account.id,
  model: 'crm',
  resource: 'contacts',
  method: 'list',
  config: MAPPING,
})
expect(stored.status).toBe(200)

test('a token that the third party has ended is renewed in the middle of a unified list, once', async () => {
  upstream.script(
    { ...people('t1'), answer: { json: { items: [{ key: 1, given: 'Ada', family: 'Byron' }], next: 'c2' } } },
    { ...people('t1', '?after=c2'), answer: { status: 401, json: {} } },
    token('t2'),
    { ...people('t2', '?after=c2'), answer: { json: { items: [{ key: 2, given: 'Bea' }] } } },
  )
  const first = await account.call('GET', '/unified/crm/contacts')
  expect(first.json.result).toMatchObject([{ id: '1', remote_id: '1', first_name: 'Ada', name: 'Ada Byron' }])
  const next = await account.call('GET', `/unified/crm/contacts?next_cursor=${first.json.next_cursor}`)
  expect(next.json).toMatchObject({ result: [{ id: '2', first_name: 'Bea' }], stop_reason: 'no_cursor' })
  expect(next.json).not.toHaveProperty('next_cursor')
})

test('an override of the account adds a field, and removing it gives the mapping back', async () => {
  const config = { response: { fields: { title: 'job', loyalty: 'tier' } } }
  const ref = { integrated_account_id: account.id, model: 'crm', resource: 'contacts' }
  const added = await account.request('POST', '/unified-mapping', { ...ref, config })
  const person = { key: 1, given: 'Ada', job: 'Analyst', tier: 'gold' }
  upstream.script({ ...people('t2'), answer: { json: { items: [person] } }, times: 2 })
  const list = async () => (await account.call('GET', '/unified/crm/contacts')).json.result
  expect(await list()).toMatchObject([{ first_name: 'Ada', title: 'Analyst', loyalty: 'gold' }])
  await account.request('DELETE', `/unified-mapping/${added.json.id}`)
  expect(await list()).toMatchObject([{ first_name: 'Ada', title: null }])
})

test('a write without a mapping is rejected, and nothing is sent', async () => {
  const answer = await account.call('POST', '/unified/crm/contacts', { first_name: 'Ada' })
  expect([answer.status, answer.reason]).toEqual([400, 'UNIFIED_NOT_MAPPED'])
})
