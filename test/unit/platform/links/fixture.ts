import { afterAll } from 'vitest'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { AccountActivator } from '../../../../src/platform/accounts/account-activator.ts'
import { createEnvironmentIntegration, createIntegration } from '../../../../src/platform/integrations/index.ts'
import {
  createLinkSession,
  getLinkSession,
  type LinkSessionInput,
  type LinkSessionRef,
  openLinkSession,
} from '../../../../src/platform/links/index.ts'
import { bootstrap } from '../../../../src/platform/tenancy/index.ts'
import { readConfig } from '../../../../src/server/config/index.ts'
import { createContainer } from '../../../../src/server/container.ts'
import { testDatabase } from '../../../support/database.ts'
import { freshName } from '../../../support/seeded-tenant.ts'

const SETTINGS = {
  PATCHBAY_PORT: '0',
  PATCHBAY_PUBLIC_URL: 'https://patchbay.example.com',
  PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
}

/** A definition with a secret field and a visible one, and nothing to verify. */
export const KEY_CONFIG: JsonObject = {
  label: 'Keys',
  base_url: 'https://api.example.com',
  credentials: {
    api_key: {
      config: {
        fields: [
          { name: 'api_key', type: 'password', required: true },
          { name: 'subdomain', required: true, format: 'hostname_label' },
        ],
      },
    },
  },
  authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
}

const INPUT: LinkSessionInput = {
  subject: { tenantId: 'acme' },
  integrations: [],
  allowedCredentials: [],
  scopes: [],
  context: {},
  region: undefined,
  isSandbox: undefined,
  objectStoreContextFields: [],
  redirectUri: '',
  origins: [],
  locale: '',
  expiresAt: undefined,
  expiresInSeconds: undefined,
  persistPreviousContext: false,
  skipPostConnectForm: false,
}

/** One environment with everything that link sessions need, on a database of its own. */
export async function linksFixture() {
  const { database, target } = await testDatabase()
  const first = await bootstrap(database)
  if (first === undefined) throw new Error('the template database is not empty')
  const secrets = createSecretStore(parseKeyRing(generateKeyRingText('test')))
  const storage = { database, secrets, embedded: undefined, [Symbol.asyncDispose]: async () => {} }
  const domain = createContainer({ config: readConfig(SETTINGS), storage, logger: silentLogger })
  afterAll(() => domain[Symbol.asyncDispose]())
  const { links } = domain
  const scope = { teamId: first.teamId, environmentId: first.environmentId }
  const activator = new AccountActivator({ ...domain.accounts, proxy: domain.proxy })

  /** Installs an integration of the config, shown in the catalogue. @returns id of the installation */
  async function install(
    config: JsonObject = KEY_CONFIG,
    fields: { readonly isEnabled?: boolean; readonly showInCatalog?: boolean; readonly override?: JsonObject } = {},
  ) {
    return await database.transaction(async (tx) => {
      const integration = await createIntegration(domain.integrations, tx, scope.teamId, {
        name: freshName('example'),
        config,
      })
      const input = { integrationId: integration.id, showInCatalog: true, ...fields }
      const { id } = await createEnvironmentIntegration(domain.integrations, tx, scope, input)
      return { id, name: integration.name }
    })
  }

  async function create(input: Partial<LinkSessionInput> = {}, within = scope) {
    return await database.transaction((tx) => createLinkSession(links, tx, within, { ...INPUT, ...input }))
  }

  /** A session that is opened in a browser. */
  async function open(input: Partial<LinkSessionInput> = {}): Promise<LinkSessionRef> {
    const { token, session } = await create(input)
    const opened = await openLinkSession(links, token)
    if (opened.kind !== 'opened') throw new Error(`not opened: ${opened.code}`)
    return { id: session.id, browserKey: opened.browserKey }
  }

  return {
    domain,
    database,
    target,
    links,
    scope,
    install,
    create,
    open,
    /** Runs the activation steps of every account that waits for them. */
    async activate() {
      while (await activator.runOnce());
    },
    read: async (id: string) => (await getLinkSession(links, scope, id)).session,
    /** Causes of a session's transitions, oldest first. */
    causes: async (id: string) => (await getLinkSession(links, scope, id)).transitions.map(({ cause }) => cause),
    events: async (id: string) => {
      const sql = `select type, payload from event where subject_id = :id and type like 'link_token:%' order by id`
      return await query<{ readonly type: string; readonly payload: JsonObject }>(database.pool, sql, { id })
    },
    /** Moves a session back in time, as if it had been made so much earlier. */
    age: async (id: string, ms: number) => {
      const by = "interval '1 millisecond' * :ms"
      const sql = `update link_session set status_at = status_at - ${by}, expires_at = expires_at - ${by},
        state_expires_at = state_expires_at - ${by}, ticket_expires_at = ticket_expires_at - ${by} where id = :id`
      await execute(database.pool, sql, { id, ms })
    },
  }
}
