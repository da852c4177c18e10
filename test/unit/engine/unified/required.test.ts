import { describe, expect, it } from 'vitest'
import { prepareRequest, type UnifiedRequest } from '../../../../src/engine/unified/index.ts'
import { catchFailure, Failure } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { CLOCK, planOf } from './engine-support.ts'
import { definitionPlan, mappingPlan } from './harness.ts'

const ACCESS = { id: 'account-1', isSandbox: false, credentials: {}, context: {}, environmentVariables: {} }

/** Field and rule of each violation; nothing when the request is taken. */
async function problemsOf(name: string, request: UnifiedRequest): Promise<string[]> {
  const [model = '', integration = '', resource = '', method = ''] = name.split('/')
  const mapping = mappingPlan(model, integration, resource, method)
  return await problemsWith(() =>
    prepareRequest({ clock: CLOCK }, { plan: definitionPlan(integration), access: ACCESS, mapping }, request),
  )
}

async function problemsWith(work: () => unknown): Promise<string[]> {
  const failure = await catchFailure(async () => work())
  if (!(failure instanceof Failure)) return []
  expect(failure.reason).toBe('INVALID_FIELD')
  return failure.violations.map(({ field, rule }) => `${field} ${rule}`)
}

const filter = (field: string, value: string): UnifiedRequest => ({ filters: [{ field, op: 'eq', value }] })
const invoice = (contact: string): UnifiedRequest => ({
  body: { contact: { id: contact }, lines: [{ total: '1' }] },
})
const ticket = (fields: JsonObject): UnifiedRequest => ({ body: { name: 'Broken', ...fields } })

describe('what an integration requires of a request', () => {
  it.each<[string, UnifiedRequest, string[]]>([
    ['ticketing/github/comments/list', {}, ['ticket required']],
    ['ticketing/github/comments/list', filter('ticket', ''), ['ticket filter', 'ticket required']],
    ['ticketing/gitlab/comments/list', {}, ['ticket required']],
    ['ticketing/jira/comments/list', {}, ['ticket required']],
    ['ticketing/asana/comments/list', {}, ['ticket required']],
    ['ticketing/clickup/comments/list', {}, ['ticket required']],
    ['ticketing/clickup/collections/list', {}, ['parent required']],
    ['ticketing/freshdesk/comments/list', {}, ['ticket required']],
    ['ticketing/intercom/comments/list', {}, ['ticket required']],
    ['ticketing/zendesk/comments/list', {}, ['ticket required']],
    ['hris/hibob/employments/list', {}, ['employee required']],
    ['hris/bamboohr/time_off/create', { body: {} }, ['body.employee required']],
    ['hris/bamboohr/employees/create', { body: { first_name: 'Ada' } }, ['body.last_name required']],
    [
      'hris/hibob/employees/create',
      { body: { first_name: 'Ada', last_name: 'Byron', work_email: 'ada@acme.test' } },
      ['body.start_date required', 'body.work_location required'],
    ],
    ['ats/ashby/stages/list', {}, ['job required']],
    ['crm/hubspot/engagements/list', {}, ['type required']],
    ['crm/hubspot/engagements/get', { id: '31' }, ['id id_parts']],
    [
      'crm/hubspot/engagements/create',
      { body: { subject: 'Demo' } },
      ['body.type required', 'body.started_at required'],
    ],
    ['ats/greenhouse/candidates/create', { body: { last_name: 'Byron' } }, ['body.first_name required']],
    ['ats/workable/candidates/create', { body: { first_name: 'Ada' } }, ['body.last_name required']],
    [
      'directory/google-workspace/users/create',
      { body: { username: 'ada@acme.test' } },
      ['body.first_name required', 'body.last_name required', 'body.emails required'],
    ],
    ['directory/google-workspace/users/list', filter('status', 'invited'), ['status filter']],
    ['directory/okta/users/create', { body: { username: 'ada' } }, ['body.emails required']],
    ['accounting/xero/accounts/create', { body: { name: 'Sales' } }, ['body.type required']],
    [
      'accounting/xero/payments/create',
      { body: { total: '1', account: { id: '7' } } },
      ['body.date required', 'body.applied_to required'],
    ],
    ['accounting/quickbooks/payments/create', { body: { total: '1' } }, ['body.contact required']],
    ['ticketing/github/tickets/create', ticket({}), ['body.collections required']],
    ['ticketing/github/tickets/create', ticket({ collections: [] }), ['body.collections required']],
    [
      'ticketing/github/tickets/create',
      ticket({ collections: [{ name: 'octo/hello' }] }),
      ['body.collections[0].id required'],
    ],
    ['ticketing/gitlab/tickets/create', ticket({}), ['body.collections required']],
    ['ticketing/jira/tickets/create', ticket({}), ['body.collections required']],
    ['ticketing/clickup/tickets/create', ticket({}), ['body.collections required']],
    ['ticketing/linear/tickets/create', ticket({}), ['body.teams required']],
    ['ticketing/github/comments/create', { body: { body: 'Hello' } }, ['body.ticket required']],
    ['ticketing/github/tickets/update', { id: 'octo:hello:7', body: { name: 'New' } }, []],
    ['ticketing/github/tickets/list', {}, []],
  ])('%s with %j: %j', async (name, request, expected) => {
    expect(await problemsOf(name, request)).toEqual(expected)
  })

  it('is asked of the filter with an operator that is honoured', async () => {
    const mapping = planOf({
      response: { fields: { id: 'id' } },
      filters: { owner: { ops: ['eq', 'in'], to: 'owner', required: true } },
    })
    const ask = (filters: UnifiedRequest['filters']) =>
      problemsWith(() =>
        prepareRequest({ clock: CLOCK }, { plan: definitionPlan('github'), access: ACCESS, mapping }, { filters }),
      )
    expect(await ask([])).toEqual(['owner required'])
    expect(await ask([{ field: 'owner', op: 'like', value: 'a' }])).toEqual(['owner required'])
    expect(await ask([{ field: 'owner', op: 'in', value: ['a'] }])).toEqual([])
  })
})

describe('a composite id without its parts', () => {
  it.each<[string, UnifiedRequest, string[]]>([
    ['ticketing/github/tickets/create', ticket({ collections: [{ id: 'nocolon' }] }), ['body.collections id_parts']],
    ['ticketing/github/tickets/create', ticket({ collections: [{ id: 'octo:' }] }), ['body.collections id_parts']],
    ['ticketing/github/tickets/create', ticket({ collections: [{ id: 'a:b:c' }] }), ['body.collections id_parts']],
    ['ticketing/github/tickets/create', ticket({ collections: [{ id: 'octo:hello' }] }), []],
    ['ticketing/github/tickets/list', filter('collections', 'nocolon'), ['collections filter']],
    ['ticketing/github/tickets/list', filter('collections', 'octo:hello'), []],
    ['ticketing/github/comments/list', filter('ticket', 'octo:hello'), ['ticket filter']],
    ['ticketing/github/tickets/get', { id: '7' }, ['id id_parts']],
    ['ticketing/github/tickets/get', { id: 'octo:hello:7' }, []],
    ['ticketing/github/collections/delete', { id: 'hello' }, ['id id_parts']],
    ['ticketing/gitlab/tickets/get', { id: '7' }, ['id id_parts']],
    ['ticketing/gitlab/comments/get', { id: '3:7' }, ['id id_parts']],
    ['ticketing/gitlab/comments/list', filter('ticket', '7'), ['ticket filter']],
    ['ticketing/jira/comments/get', { id: '7' }, ['id id_parts']],
    ['accounting/quickbooks/contacts/get', { id: '56' }, ['id id_parts']],
    ['accounting/quickbooks/contacts/get', { id: 'vendor:56' }, []],
    ['accounting/quickbooks/invoices/delete', { id: 'bill:' }, ['id id_parts']],
    ['accounting/quickbooks/invoices/list', filter('contact', '56'), ['contact filter']],
    ['accounting/quickbooks/invoices/create', invoice('56'), ['body.contact id_parts']],
    ['accounting/quickbooks/invoices/create', invoice('customer:56'), []],
    ['accounting/quickbooks/payments/update', { id: '7', body: { total: '1' } }, ['id id_parts']],
    ['accounting/netsuite/contacts/get', { id: '56' }, ['id id_parts']],
    ['accounting/netsuite/invoices/list', filter('contact', '56'), ['contact filter']],
    ['accounting/netsuite/invoices/create', invoice('customer:5:6'), ['body.contact id_parts']],
    ['accounting/netsuite/payments/get', { id: 'vendor_payment:7' }, []],
  ])('%s with %j: %j', async (name, request, expected) => {
    expect(await problemsOf(name, request)).toEqual(expected)
  })
})
