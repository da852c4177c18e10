import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import { execute, jsonb } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import type { TestApp } from '../support/app.ts'
import type { Tenant } from '../support/seeded-tenant.ts'
import { callDefinition, connectAccount } from './calls.ts'

/** The definition of `calls.ts` with users, which contacts refer to. */
function mappedDefinition(baseUrl: string): JsonObject {
  const definition = callDefinition(baseUrl)
  const users = {
    list: { path: '/users', response_path: 'users', pagination: null },
    get: { path: '/users/{{id}}' },
  }
  return { ...definition, resources: { ...(definition.resources as JsonObject), users } }
}

/** The mapping of `crm/contacts` to it, by method. */
const CONTACTS: Readonly<Record<string, JsonObject>> = {
  '*': {
    resource: 'contacts',
    response: {
      fields: {
        id: 'id',
        first_name: 'first',
        last_name: 'last',
        emails: '[{"address": mail, "type": "work"}]',
        lifecycle_stage: 'stage',
        owner: { id: 'owner_id' },
        updated_at: 'changed',
      },
    },
    enums: { lifecycle_stage: { map: { L: 'lead', C: 'customer' } } },
    custom_fields: { mode: 'rest' },
    expand: {
      owner: {
        resource: 'users',
        method: 'list',
        ids: 'owner_id',
        batch: { size: 2, query: { ids: "$join($ids, ',')" }, key: 'id' },
        fields: { id: 'id', name: 'name' },
      },
    },
  },
  list: {
    method: 'list',
    filters: {
      updated_at: { ops: ['gt', 'gte'], to: 'since' },
      lifecycle_stage: { ops: ['eq', 'in'], to: 'stage' },
    },
    sort: { updated_at: { asc: { order: "'changed'" }, desc: { order: "'-changed'" } } },
  },
  get: { method: 'get' },
  create: { method: 'create', request: { body: { first: 'first_name', last: 'last_name', stage: 'lifecycle_stage' } } },
  update: { method: 'update', request: { body: { first: 'first_name', last: 'last_name', stage: 'lifecycle_stage' } } },
  delete: { method: 'delete' },
  merge: { method: 'merge', request: { body: { into: '$body.into' } } },
}

/** Stores a mapping of `crm/contacts` for all accounts of an environment, or for one. */
export async function storeContacts(
  app: TestApp,
  { teamId, environmentId }: Tenant,
  integrationName: string,
  methods: Readonly<Record<string, JsonObject>> = CONTACTS,
  accountId: string | null = null,
): Promise<void> {
  for (const [method, config] of Object.entries(methods))
    await execute(
      app.database.pool,
      `insert into unified_mapping (id, team_id, environment_id, integrated_account_id, model, resource, integration_name, method,
         config)
       values (:id, :teamId, :environmentId, :accountId, 'crm', 'contacts', :integrationName, :method, :config::jsonb)`,
      { id: newId(), teamId, environmentId, accountId, integrationName, method, config: jsonb(config) },
    )
}

/** An account whose integration has the mapping. @param resources of its definition, over those of `mappedDefinition` */
export async function connectMapped(
  app: TestApp,
  tenant: Tenant,
  baseUrl: string,
  account: JsonObject = {},
  resources: JsonObject = {},
): Promise<{ readonly accountId: string; readonly integrationName: string }> {
  const mapped = mappedDefinition(baseUrl)
  const definition = { ...mapped, resources: { ...(mapped.resources as JsonObject), ...resources } }
  const { accountId, integrationId } = await connectAccount(app, tenant, definition, account)
  const team = app.client('connect', { token: tenant.teamToken })
  const { name } = await team.ok(IntegrationService.method.getIntegration, { id: integrationId })
  await storeContacts(app, tenant, String(name))
  return { accountId, integrationName: String(name) }
}

/** A contact of the third party, and what it is mapped to. */
export function contact(id: number, more: JsonObject = {}): JsonObject {
  const changed = `2026-01-0${id}T00:00:00.250Z`
  return {
    id,
    first: `Ada ${id}`,
    last: 'Lovelace',
    mail: `a${id}@b.example`,
    stage: 'L',
    owner_id: id + 10,
    changed,
    ...more,
  }
}
