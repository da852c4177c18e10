import { afterAll, afterEach } from 'vitest'
import { query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { startTestApp, type TestApp } from '../../../support/app.ts'
import { expectJson } from '../../../support/rest.ts'
import { freshName } from '../../../support/seeded-tenant.ts'
import { startUpstream, type Upstream } from '../../../support/upstream.ts'

/** A definition with one tool of each kind: paged list, get, create, delete, search and an action. */
function crmDefinition(baseUrl: string): JsonObject {
  return {
    label: 'Acme CRM',
    base_url: baseUrl,
    credentials: {
      api_key: { config: { fields: [{ name: 'api_key', label: 'API key', type: 'password', required: true }] } },
    },
    authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
    pagination: { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'after', limit_key: 'per_page' } },
    retry: { max_attempts: 1 },
    tool_tags: { contacts: ['people'] },
    actions: {
      headcount: {
        type: 'request',
        description: 'Counts the people of a department.',
        args_schema: {
          type: 'object',
          properties: { department: { type: 'string', description: 'Its name.' } },
          required: ['department'],
        },
        config: { method: 'GET', path: '/departments/{{args.department}}/count' },
      },
    },
    resources: {
      contacts: {
        list: {
          path: '/contacts',
          response_path: 'items',
          description: 'Lists contacts.',
          query: { workspace: '{{context.workspace}}' },
          query_schema: {
            type: 'object',
            properties: {
              'filter[email]': { type: 'string', description: 'Only contacts with this address.' },
              after: { type: 'string' },
              per_page: { type: 'integer' },
              workspace: { type: 'string' },
            },
          },
        },
        get: { path: '/contacts/{{id}}', description: 'Gets one contact.' },
        create: {
          method: 'POST',
          path: '/contacts',
          description: 'Creates a contact.',
          body_schema: {
            type: 'object',
            properties: {
              email: { type: 'string', description: 'Address.' },
              age: { type: 'integer', minimum: 0 },
              kind: { type: 'string', enum: ['lead', 'customer'] },
            },
            required: ['email'],
          },
        },
        delete: { method: 'DELETE', path: '/contacts/{{id}}', description: 'Deletes a contact.' },
        search: {
          method: 'POST',
          path: '/contacts/search',
          read_only: true,
          timeout: 0.2,
          description: 'Searches contacts.',
          body_schema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
        },
        merge: { method: 'POST', path: '/contacts/{{id}}/merge' },
      },
    },
  }
}

/** The API with an active account of a scripted CRM. */
export interface ToolServerFixture {
  readonly app: TestApp
  readonly upstream: Upstream
  readonly integrationName: string
  readonly integrationId: string
  readonly environmentIntegrationId: string
  readonly accountId: string
  /** Another account of the same installation. */
  addAccount(tenantId: string, more?: JsonObject): Promise<string>
  /** Calls a path of the API with the environment's token, and expects success. */
  call(verb: string, path: string, body?: JsonObject): Promise<JsonObject>
  /** Creates a tool server of the account. */
  createServer(settings?: JsonObject): Promise<CreatedServer>
}

export interface CreatedServer {
  readonly id: string
  readonly url: string
  readonly token: string
}

export const API_KEY = 'canary-7f3a-crm-key'

/** What is not that of the CRM above. */
export interface FixtureOptions {
  readonly define?: (baseUrl: string) => JsonObject
  readonly integrationName?: string
  readonly credentials?: JsonObject
  /** Environment variables of the service. */
  readonly settings?: Readonly<Record<string, string>>
}

/** Starts it for one test file. Exchanges of the CRM are verified after each test. */
export async function startToolServerFixture({
  define = crmDefinition,
  integrationName = freshName('crm'),
  credentials = { api_key: API_KEY },
  settings = {},
}: FixtureOptions = {}): Promise<ToolServerFixture> {
  const app = await startTestApp({ PATCHBAY_EGRESS_ALLOW: '127.0.0.1/32', ...settings })
  const upstream = await startUpstream()
  afterAll(() => upstream[Symbol.asyncDispose]())
  afterEach(() => upstream.verify())
  const team = (verb: string, path: string, body: object) => expectJson(verb, app.url + path, app.first.teamToken, body)
  const call = async (verb: string, path: string, body?: JsonObject): Promise<JsonObject> =>
    await expectJson(verb, app.url + path, app.first.environmentToken, body)
  const integration = await team('POST', '/integration', { name: integrationName, config: define(upstream.url) })
  const installation = await call('POST', '/environment-integration', { integration_id: integration.id })
  const addAccount = async (tenantId: string, more: JsonObject = {}) => {
    const account = await call('POST', '/integrated-account', {
      environment_integration_id: String(installation.id),
      tenant_id: tenantId,
      authentication_method: 'api_key',
      credentials,
      context: { workspace: 'w1' },
      ...more,
    })
    // No worker runs here: nothing is verified.
    await query(app.database.pool, `update integrated_account set status = 'active' where id = :id`, {
      id: String(account.id),
    })
    return String(account.id)
  }
  const accountId = await addAccount('acme')
  return {
    app,
    upstream,
    integrationName,
    integrationId: String(integration.id),
    environmentIntegrationId: String(installation.id),
    accountId,
    addAccount,
    call,
    async createServer(settings = {}) {
      const scope = 'tenant_id' in settings ? {} : { integrated_account_id: accountId }
      const created = await call('POST', '/tool-server', { name: 'Acme', ...scope, ...settings })
      return { id: String(created.id), url: `${app.url}/mcp/${created.id}`, token: String(created.token) }
    },
  }
}
