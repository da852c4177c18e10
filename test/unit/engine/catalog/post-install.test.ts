import { afterAll, expect, test } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { type AccountReporter, createProxy } from '../../../../src/engine/proxy/index.ts'
import type { EgressRequest, EgressResponse } from '../../../../src/foundation/egress/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { shipped } from './shipped.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

/** What prepares an account after its consent: answers by address, and the context keys that come of them. */
interface Installation {
  readonly context?: JsonObject
  readonly answers: Readonly<Record<string, Json>>
  readonly found: JsonObject
}

const RESOURCES = 'https://api.atlassian.com/oauth/token/accessible-resources'
const SITES = [
  { id: 'c1', name: 'acme', url: 'https://acme.atlassian.net' },
  { id: 'c2', name: 'beta', url: 'https://beta.atlassian.net' },
]
const CONNECTIONS = [
  { tenantId: 'p1', tenantType: 'PRACTICE', tenantName: 'Books' },
  { tenantId: 't1', tenantType: 'ORGANISATION', tenantName: 'Acme' },
]
const LAUNCHPAD = {
  'https://launchpad.37signals.com/authorization.json': {
    accounts: [
      { product: 'campfire', id: 7, name: 'Chat' },
      { product: 'bc3', id: 99, name: 'Acme' },
    ],
  },
}

const TWO_ACCOUNTS = {
  'https://launchpad.37signals.com/authorization.json': {
    accounts: [
      { product: 'bc3', id: 99, name: 'Acme' },
      { product: 'bc3', id: 98, name: 'Beta' },
    ],
  },
}

const ROWS: readonly (readonly [name: string, promise: string, Installation])[] = [
  [
    'jira',
    'leaves the choice of several sites to the customer',
    {
      answers: { [RESOURCES]: SITES },
      found: { cloud_id: null, site_name: null, site_count: 2, api_url: null },
    },
  ],
  [
    'jira',
    'keeps the chosen site when an account is connected again',
    {
      context: { api_url: 'https://api.atlassian.com/ex/jira/c2' },
      answers: { [RESOURCES]: SITES },
      found: { cloud_id: 'c2', site_name: 'beta', site_count: 2, api_url: 'https://api.atlassian.com/ex/jira/c2' },
    },
  ],
  [
    'confluence',
    'takes another site when the chosen one is no longer shared',
    {
      context: { api_url: 'https://api.atlassian.com/ex/confluence/gone' },
      answers: { [RESOURCES]: SITES.slice(0, 1) },
      found: {
        cloud_id: 'c1',
        site_name: 'acme',
        site_count: 1,
        api_url: 'https://api.atlassian.com/ex/confluence/c1',
      },
    },
  ],
  [
    'xero',
    'takes the only organisation, not a practice',
    {
      answers: { 'https://api.xero.com/connections': CONNECTIONS },
      found: { tenant_id: 't1', tenant_name: 'Acme', organisation_count: 1 },
    },
  ],
  [
    'basecamp',
    'takes the only account of Basecamp',
    { answers: LAUNCHPAD, found: { account_id: '99', account_name: 'Acme', account_count: 1 } },
  ],
  [
    'basecamp',
    'keeps the chosen account',
    {
      context: { account_id: '98' },
      answers: TWO_ACCOUNTS,
      found: { account_id: '98', account_name: 'Beta', account_count: 2 },
    },
  ],
  [
    'basecamp',
    'asks again when the chosen account is gone',
    {
      context: { account_id: '97' },
      answers: TWO_ACCOUNTS,
      found: { account_id: null, account_name: null, account_count: 2 },
    },
  ],
  [
    'mailchimp',
    'asks for the data center before it calls it',
    {
      answers: {
        'https://login.mailchimp.com/oauth2/metadata': { dc: 'us6', user_id: 1 },
        'https://us6.api.mailchimp.com/3.0/': { account_id: 'a1', login_id: 'l1' },
      },
      found: { dc: 'us6', account_id: 'a1', login_id: 'l1' },
    },
  ],
  [
    'calendly',
    'knows user and organization of a personal token too',
    {
      answers: { 'https://api.calendly.com/users/me': { resource: { uri: 'u', current_organization: 'o' } } },
      found: { user_uri: 'u', organization_uri: 'o' },
    },
  ],
]

test.each(ROWS)('%s %s', async (name, _promise, { context = {}, answers, found }) => {
  const patches: JsonObject[] = []
  const plan = compilePlan(shipped(name).config)
  const run = await proxyAnswering(answers, patches).runAction(
    plan,
    {
      id: 'a',
      isSandbox: false,
      context,
      credentials: { oauth: { token: { access_token: 't' } } },
      environmentVariables: {},
    },
    { target: { kind: 'action', action: 'post_install' } },
  )
  expect(run.outcome.kind).toBe('ok')
  expect(Object.assign({}, ...patches)).toEqual(found)
})

function proxyAnswering(answers: Installation['answers'], patches: JsonObject[]) {
  const send = async ({ url }: EgressRequest): Promise<EgressResponse> => {
    const answer = answers[url]
    if (answer === undefined) throw new Error(`unexpected call of ${url}`)
    const headers = { 'content-type': 'application/json' }
    return { status: 200, headers, body: Buffer.from(JSON.stringify(answer)), url }
  }
  const accountReporter: AccountReporter = {
    report: async () => {},
    updateContext: async (_access, patch) => void patches.push(patch),
  }
  const clock = { now: () => new Date(0), monotonicMs: () => 0, sleep: async () => {} }
  return createProxy({
    http: { send, stream: () => Promise.reject(new Error('no step streams')) },
    evaluator,
    clock,
    accountReporter,
  })
}
