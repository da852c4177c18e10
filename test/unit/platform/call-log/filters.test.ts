import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { beforeAll, describe, expect, it } from 'vitest'
import { CallLogService } from '../../../../gen/patchbay/v1/call_log_service_pb.ts'
import { lowestIdAt, newId } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { startTestApp } from '../../../support/app.ts'
import { testDatabase } from '../../../support/database.ts'
import { createApiEnvironment } from '../../../support/seeded-tenant.ts'

const { database } = await testDatabase()
const app = await startTestApp({}, database)
const { listCallLogEntries } = CallLogService.method
const { first } = app

interface Entry {
  readonly id?: string
  readonly environmentId?: string
  readonly resource?: string
  readonly method?: string
  readonly url?: string
  readonly class?: string
  readonly cause?: string
}

async function addEntry(entry: Entry): Promise<string> {
  const id = newId()
  await execute(
    database.pool,
    `insert into call_log_entry (environment_id, id, resource, method, http_method, url, class, started_at, total_ms, attempt,
       bytes_sent, bytes_received, cause)
     values (:environmentId, :id, :resource, :method, 'GET', :url, :class, now(), 1, 1, 0, 0, :cause)`,
    {
      environmentId: first.environmentId,
      id,
      resource: '',
      method: '',
      url: '',
      class: 'success',
      cause: 'call',
      ...entry,
    },
  )
  return entry.id ?? id
}

const ENTRIES: readonly Entry[] = [
  { url: 'https://api.example.com/v1/Invoices/7?q=orders', resource: 'bills', method: 'get', class: 'timeout' },
  { url: 'https://orders.example.com/token', class: 'error', cause: 'token' },
  { url: 'https://api.example.com', class: 'blocked', cause: 'run', resource: 'orders', method: 'list' },
  { url: 'https://api.example.com/v1/a_b%/c', cause: 'run' },
]
const ids: string[] = []

beforeAll(async () => {
  for (const entry of ENTRIES) ids.push(await addEntry(entry))
})

describe.each(app.clients())('the filters of the request log over $wire', (client) => {
  it.each([
    ['the kind of the cause', { cause: 'run' }, [3, 2]],
    ['a kind that nothing has', { cause: 'subscription' }, []],
    ['everything that failed', { failed: true }, [2, 1, 0]],
    ['all, where failures are not asked for', { failed: false }, [3, 2, 1, 0]],
    ['what failed of a kind', { failed: true, cause: 'run' }, [2]],
    ['a part of the path, in any case', { path_contains: 'inVOICES/7' }, [0]],
    ['nothing by the query or the host of the address', { path_contains: 'orders.' }, [2]],
    ['resource and method', { path_contains: 'Orders.List' }, [2]],
    ['no patterns', { path_contains: 'a_b%' }, [3]],
    ['a wildcard as the character that it is', { path_contains: '%7' }, []],
    ['a text within a kind', { path_contains: 'example', cause: 'run' }, []],
    ['the path within a kind', { path_contains: '/v1/', cause: 'run' }, [3]],
  ] as const)('find %s', async (_, filter, expected) => {
    const { call_log_entries: found = [] } = await client.ok(listCallLogEntries, filter)
    expect((found as JsonObject[]).map(({ id }) => ids.indexOf(String(id)))).toEqual(expected)
  })
})

it('compares a text with 5000 entries for a page, and goes on with the next one', async () => {
  const { environmentId, environmentToken: token } = await createApiEnvironment(app, first.teamToken)
  const url = 'https://api.example.com/needle'
  const oldest = await addEntry({ environmentId, url, id: lowestIdAt(new Date(Date.now() - 1_000)) })
  await execute(
    database.pool,
    `insert into call_log_entry (environment_id, id, resource, method, http_method, url, class, started_at, total_ms, attempt,
       bytes_sent, bytes_received, cause)
     select :environmentId, (left(:last, 24) || lpad(to_hex(n), 12, '0'))::uuid, '', '', 'GET', 'https://api.example.com/hay',
       'success', now(), 1, 1, 0, 0, 'call' from generate_series(1, 9999) n`,
    { environmentId, last: newId() },
  )
  const newest = await addEntry({ environmentId, url, id: lowestIdAt(new Date(Date.now() + 1_000)) })
  const client = app.client('rest', { token })
  const pages: (readonly string[])[] = []
  let page_token = ''
  do {
    const page = await client.ok(listCallLogEntries, { path_contains: 'NEEDLE', page_token })
    pages.push(((page.call_log_entries ?? []) as JsonObject[]).map(({ id }) => String(id)))
    page_token = String(page.next_page_token ?? '')
  } while (page_token !== '')
  expect(pages).toEqual([[newest], [], [oldest]])
})

it('follows what failed of a kind, by its path', async () => {
  const transport = createConnectTransport({ baseUrl: app.url, httpVersion: '1.1' })
  const headers = { authorization: `Bearer ${first.environmentToken}` }
  const filter = { cause: 'token', failed: true, pathContains: '/oauth' }
  const watch = createClient(CallLogService, transport).watchCallLogEntries(filter, { headers })
  const messages = watch[Symbol.asyncIterator]()
  expect((await messages.next()).value?.callLogEntry).toBeUndefined()
  const url = 'https://api.example.com/OAuth/token'
  const others = [{ cause: 'run' }, { class: 'success' }, { url: 'https://api.example.com/?a=/oauth' }]
  for (const other of others) await addEntry({ url, cause: 'token', class: 'error', ...other })
  const id = await addEntry({ url, cause: 'token', class: 'error' })
  expect((await messages.next()).value?.callLogEntry).toMatchObject({ id })
  await messages.return?.()
})
