import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import type { TestApp } from '../support/app.ts'
import { freshName, idOf, type Tenant } from '../support/seeded-tenant.ts'

/** Lets calls reach the scripted third party. */
export const LOCAL_UPSTREAM = { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' }

/** A third party with one of every kind of method that the doors tell apart. */
export function callDefinition(baseUrl: string): JsonObject {
  return {
    base_url: baseUrl,
    credentials: { api_key: { config: { fields: [{ name: 'api_key', label: 'API key', type: 'password' }] } } },
    authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
    pagination: { format: 'page', config: { page_key: 'page', limit_key: 'limit', limit: 2 } },
    rate_limit: {
      rate_limit_header_expression:
        '{"limit": headers.`x-limit`, "remaining": headers.`x-left`, "reset": headers.`x-reset`}',
    },
    error_expression:
      '$exists(body.fault) ? {"status": body.fault.status, "message": body.fault.text, "action": body.fault.action, "metadata": {"code": body.fault.code, "at": body.fault.at}, "headers": body.fault.headers, "result": body.fault.result} : status >= 400 ? {"status": status}',
    tool_tags: { contacts: ['crm'] },
    resources: {
      contacts: {
        list: { path: '/contacts', response_path: 'data', description: 'Lists contacts.' },
        get: { path: '/contacts/{{id}}', description: 'One contact.' },
        create: { method: 'POST', path: '/contacts' },
        update: { method: 'PATCH', path: '/contacts/{{id}}' },
        delete: { method: 'DELETE', path: '/contacts/{{id}}' },
        merge: { method: 'POST', path: '/contacts/{{id}}/merge' },
        whoami: { path: '/me', headers: { accept: 'application/json' } },
        /** Its expression forgets every status. */
        peek: { path: '/peek', error_expression: 'body.fault ? {"status": 400}', retry: { max_attempts: 1 } },
        import: { method: 'POST', path: '/contacts/import', query: { mode: '{{args.mode?:all}}' } },
      },
      counted: {
        list: {
          path: '/counted',
          response_path: 'data',
          retry: { max_attempts: 1 },
          pagination: {
            format: 'page',
            config: { page_key: 'page', limit_key: 'limit', limit: 2, total_path: 'total' },
          },
        },
      },
      files: {
        get: { path: '/files/{{id}}', response_format: 'binary' },
        create: { method: 'POST', path: '/files' },
      },
    },
    actions: {
      sign_off: { steps: [{ type: 'request', config: { method: 'POST', path: '/sign-off' } }] },
      archive: {
        type: 'request',
        config: {
          method: 'POST',
          path: '/archive/{{args.year}}',
          body: { keep: '{{args.keep}}', note: '{{body.note}}' },
        },
      },
    },
  }
}

/** An account of a new installation of the definition. */
export async function connectAccount(
  app: TestApp,
  tenant: Tenant,
  definition: JsonObject,
  account: JsonObject = {},
): Promise<{ readonly accountId: string; readonly integrationId: string; readonly environmentIntegrationId: string }> {
  const team = app.client('connect', { token: tenant.teamToken })
  const environment = app.client('connect', { token: tenant.environmentToken })
  const integrationId = await idOf(team, IntegrationService.method.createIntegration, {
    name: freshName('called'),
    config: definition,
  })
  const { createEnvironmentIntegration } = EnvironmentIntegrationService.method
  const environmentIntegrationId = await idOf(environment, createEnvironmentIntegration, {
    integration_id: integrationId,
  })
  const accountId = await idOf(environment, IntegratedAccountService.method.createIntegratedAccount, {
    environment_integration_id: environmentIntegrationId,
    tenant_id: 'acme',
    credentials: { api_key: 'k-123' },
    ...account,
  })
  return { accountId, integrationId, environmentIntegrationId }
}
