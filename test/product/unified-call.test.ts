import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { UnifiedService } from '../../gen/patchbay/v1/unified_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { firstTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { LOCAL_UPSTREAM } from './calls.ts'
import { connectMapped, contact } from './unified.ts'

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
const tenant = firstTenant(app)
const { accountId, integrationName } = await connectMapped(app, tenant, upstream.url)
const sandbox = await connectMapped(app, tenant, upstream.url, { is_sandbox: true })
const { call } = UnifiedService.method

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

const CONTACTS = { integrated_account_id: accountId, model: 'crm', resource: 'contacts' }
const ADA = {
  id: '1',
  remote_id: '1',
  first_name: 'Ada 1',
  last_name: 'Lovelace',
  emails: [{ address: 'a1@b.example', type: 'work' }],
  lifecycle_stage: 'lead',
  owner: { id: '11' },
  updated_at: '2026-01-01T00:00:00.250Z',
}

describe.each(inTurn(app.clients()))('a call of a unified resource over $wire', (client) => {
  const ok = (request: JsonObject) => client.ok(call, { ...CONTACTS, ...request })
  const failure = (request: JsonObject) => client.callError(call, { ...CONTACTS, ...request })

  it('lists records in the shape of the model, page by page', async () => {
    upstream.script(
      { request: 'GET /contacts?page=1&limit=1', answer: { json: { data: [contact(1)] } } },
      { request: 'GET /contacts?page=2&limit=1', answer: { json: { data: [] } } },
    )
    const first = await ok({ method: 'list', page: { limit: 1 } })
    expect(first.result).toEqual([expect.objectContaining(ADA)])
    const last = await ok({ method: 'list', page: { next_cursor: String(first.next_cursor) } })
    expect([last.result, last.stop_reason]).toEqual([[], 'empty_page'])
  })

  it('reads, creates, updates, deletes a record, and calls a method of its own', async () => {
    const written = { first: 'Ada', last: 'Byron', stage: 'C' }
    upstream.script(
      { request: 'GET /contacts/1', answer: { json: contact(1) } },
      { request: 'POST /contacts', body: { ...written, vip: true }, answer: { json: contact(1) } },
      { request: 'PATCH /contacts/1', body: { first: 'Ada' }, answer: { json: contact(1) } },
      { request: 'DELETE /contacts/1', answer: { status: 204 } },
      { request: 'POST /contacts/1/merge', body: { into: 'x' }, answer: { json: contact(2) } },
    )
    const body = { first_name: 'Ada', last_name: 'Byron', lifecycle_stage: 'customer' }
    expect((await ok({ method: 'get', id: '1' })).result).toMatchObject(ADA)
    expect((await ok({ method: 'create', body, remote_fields: { vip: true } })).result).toMatchObject(ADA)
    expect((await ok({ method: 'update', id: '1', body: { first_name: 'Ada' } })).result).toMatchObject(ADA)
    expect((await ok({ method: 'delete', id: '1' })).result).toEqual({ id: '1' })
    expect((await ok({ method: 'merge', id: '1', body: { into: 'x' } })).result).toMatchObject({ id: '2' })
  })

  it('passes on filters, order and parameters of the third party, and says which filters it does not', async () => {
    upstream.script({
      request: 'GET /contacts?since=2026-01-01&stage=C&order=-changed&archived=no&page=1&limit=2',
      answer: { json: { data: [] } },
    })
    const query = {
      updated_at: { gt: '2026-01-01' },
      lifecycle_stage: 'customer',
      first_name: 'Ada',
      shoe_size: { gt: '40' },
      sort_by: '-updated_at',
      remote_query: { archived: 'no' },
    }
    const { ignored_filters } = await ok({ method: 'list', query })
    expect(ignored_filters).toEqual([
      { field: 'first_name', op: 'eq', reason: 'not_supported' },
      { field: 'shoe_size', op: 'gt', reason: 'unknown_field' },
    ])
  })

  it('expands references with as few calls as the third party allows', async () => {
    const users = (...ids: number[]) => ({ json: { users: ids.map((id) => ({ id, name: `User ${id}` })) } })
    upstream.script(
      {
        request: 'GET /contacts?page=1&limit=3',
        answer: { json: { data: [contact(1), contact(2), contact(3, { owner_id: 11 })] } },
      },
      { request: 'GET /users?ids=11%2C12', answer: users(11, 12) },
    )
    const { result } = await ok({ method: 'list', page: { limit: 3 }, query: { expand: 'owner' } })
    expect((result as JsonObject[]).map(({ owner }) => owner)).toEqual([
      { id: '11', name: 'User 11' },
      { id: '12', name: 'User 12' },
      { id: '11', name: 'User 11' },
    ])
  })

  it('shows the record of the third party, and its answer, when asked to', async () => {
    upstream.script({ request: 'GET /contacts/1', answer: { json: contact(1) } })
    const { result, raw } = await ok({
      method: 'get',
      id: '1',
      include_raw: true,
      query: { include_remote_data: 'true' },
    })
    expect([raw, (result as JsonObject).remote_data]).toEqual([contact(1), contact(1)])
  })

  it.each<[string, JsonObject, string, string]>([
    ['an unknown model', { model: 'crn', method: 'list' }, 'UNIFIED_NOT_MAPPED', 'crn'],
    ['an unknown resource', { resource: 'contact', method: 'list' }, 'UNIFIED_NOT_MAPPED', 'contacts'],
    ['an unknown method', { method: 'merg', id: '1' }, 'UNIFIED_NOT_MAPPED', 'merge'],
    ['a resource without mapping', { resource: 'leads', method: 'list' }, 'UNIFIED_NOT_MAPPED', integrationName],
    [
      'an unknown account',
      { integrated_account_id: newId(), method: 'list' },
      'RESOURCE_NOT_FOUND',
      'integrated_account',
    ],
  ])('rejects %s and says what there is', async (_, request, reason, text) => {
    const error = await failure(request)
    expect(error.reason).toBe(reason)
    expect(error.message).toContain(text)
    expect(error.httpStatus ?? 404).toBeLessThan(500)
  })

  it.each<[string, JsonObject, string]>([
    ['no comparison', { method: 'list', query: { updated_at: { after: '2026' } } }, 'updated_at[after]'],
    ['no number', { method: 'list', query: { limit: 'all' } }, 'limit'],
    ['no flag', { method: 'list', query: { strict_filters: 'perhaps' } }, 'strict_filters'],
    ['no field', { method: 'list', query: { sort_by: 'a,b' } }, 'sort_by'],
    ['nothing that can be expanded', { method: 'list', query: { expand: 'emails' } }, 'expand'],
    ['no value of an enumeration', { method: 'list', query: { lifecycle_stage: 'Lead' } }, 'lifecycle_stage'],
    ['no stage', { method: 'create', body: { lifecycle_stage: 'boss' } }, 'lifecycle_stage'],
    ['no text', { method: 'create', body: { first_name: { a: 'b' } } }, 'first_name'],
    ['a field that is read only', { method: 'update', id: '1', body: { name: 'Ada' } }, 'name'],
    ['a field that does not exist', { method: 'create', body: { shoe_size: '40' } }, 'shoe_size'],
  ])('rejects %s before anything is sent', async (_, request, field) => {
    const { reason, violations } = await failure(request)
    expect([reason, violations?.map((each) => each.field)]).toEqual(['INVALID_FIELD', [expect.stringContaining(field)]])
    expect(upstream.requests).toEqual([])
  })

  it('rejects filters that are not passed on when they must be', async () => {
    const query = { first_name: 'Ada', strict_filters: 'true' }
    const { reason, violations } = await failure({ method: 'list', query })
    expect([reason, violations?.[0]?.field]).toEqual(['INVALID_FIELD', 'first_name'])
  })

  it('answers errors and rate limits of the third party as the proxy does', async () => {
    upstream.script(
      { request: 'GET /contacts/1', answer: { status: 404, json: { message: 'no such contact' } } },
      { request: 'GET /contacts/2', answer: { status: 429, headers: { 'retry-after': '9' }, json: {} } },
    )
    const missing = await failure({ method: 'get', id: '1' })
    expect(missing).toMatchObject({
      reason: 'UPSTREAM_ERROR',
      metadata: { upstream_status: '404', model: 'crm', resource: 'contacts', method: 'get' },
    })
    const limited = await failure({ method: 'get', id: '2' })
    expect(limited).toMatchObject({ reason: 'UPSTREAM_RATE_LIMITED', retryAfterSeconds: 9 })
  })

  it('sends no write for a sandbox account', async () => {
    const request = { integrated_account_id: sandbox.accountId, method: 'create', body: { first_name: 'Ada' } }
    expect((await failure(request)).reason).toBe('SANDBOX_ACCOUNT_READ_ONLY')
  })

  it('shows what would be sent, and sends nothing', async () => {
    const body = { first_name: 'Ada', lifecycle_stage: 'lead' }
    const { dry_run } = await ok({ method: 'create', body, dry_run: true })
    expect(dry_run).toMatchObject({
      call: { method: 'POST', url: `${upstream.url}/contacts`, body: '{"first":"Ada","stage":"L"}', is_write: true },
    })
    expect(upstream.requests).toEqual([])
  })
})

describe('a dry run with a sample', () => {
  it('shows how it would be mapped', async () => {
    const client = app.client('connect')
    const sample = { status: 200, body: { data: [contact(1)] } }
    const { dry_run } = await client.ok(call, { ...CONTACTS, method: 'list', dry_run: true, sample })
    expect(dry_run).toMatchObject({ mapped: [ADA], call: { outcome: { kind: 'ok', record_count: 1 } } })
  })
})
