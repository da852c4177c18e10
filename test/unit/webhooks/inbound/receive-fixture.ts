import { createHmac } from 'node:crypto'
import { query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { startTestApp } from '../../../support/app.ts'
import { expectJson } from '../../../support/rest.ts'
import { freshName } from '../../../support/seeded-tenant.ts'

/** The secret that third parties of the tests sign with. */
export const SECRET = 'a-signing-secret-of-32-characters'

/** HMAC of the body in the header x-signature. */
export const SIGNED: JsonObject = {
  signature_verification: {
    format: 'hmac',
    config: { secret: SECRET, parts: ['$body'], compare_with: '$header.x-signature' },
  },
}

/** A request as it was stored. */
export interface StoredRequest {
  readonly id: string
  readonly state: string
  readonly signature: string
  readonly method: string
  readonly query: string
  readonly key: string | null
  readonly duplicates: number
  readonly bodyBytes: number
  readonly providerTime: Date | null
  readonly trace: JsonObject
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer
  readonly payload: unknown
  readonly isQueued: boolean
}

/** What a request of a test is made of. */
export interface TestRequest {
  readonly method?: string
  readonly path?: string
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

/** An API without workers, and addresses of definitions with a webhook block. */
export async function receiveFixture() {
  const app = await startTestApp({ PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' })
  const { teamToken, environmentToken } = app.first
  const tx = app.database.pool

  /** Installs a definition with this webhook block and connects an account, in the given status. */
  async function address(
    webhook: JsonObject | undefined,
    more: { readonly status?: string; readonly variables?: JsonObject } = {},
  ) {
    const config = {
      label: 'Third party',
      base_url: 'http://127.0.0.1:9',
      credentials: { format: 'api_key', config: { fields: [{ name: 'api_key', type: 'password', required: true }] } },
      ...(webhook === undefined ? {} : { webhook }),
    }
    const integration = await expectJson('POST', `${app.url}/integration`, teamToken, {
      name: freshName('inbound'),
      config,
    })
    const installation = await expectJson('POST', `${app.url}/environment-integration`, environmentToken, {
      integration_id: integration.id,
      override: { environment_variables: more.variables ?? {} },
    })
    const account = await expectJson('POST', `${app.url}/integrated-account`, environmentToken, {
      environment_integration_id: installation.id,
      tenant_id: 'acme',
      credentials: { api_key: 'the-api-key-of-acme' },
    })
    await query(tx, 'update integrated_account set status = :status where id = :id', {
      status: more.status ?? 'active',
      id: account.id,
    })
    return { accountId: account.id, installationId: installation.id, path: `/integrated-account-webhook/${account.id}` }
  }

  async function send(path: string, { method = 'POST', body, headers = {}, path: more = '' }: TestRequest = {}) {
    const response = await fetch(`${app.url}${path}${more}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : Buffer.from(body) }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  return {
    app,
    address,
    send,
    /** Sends a body with its signature. */
    sendSigned: (path: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
      send(path, { body, headers: { 'x-signature': signatureOf(body), ...headers } }),
    /** The requests that are stored of an address, oldest first. */
    stored: (sourceId: string): Promise<readonly StoredRequest[]> =>
      query(
        tx,
        `select e.id, e.state, e.signature, e.method, e.query, e.dedupe_key as key, e.duplicates, e.body_bytes as "bodyBytes",
           e.provider_time as "providerTime", e.trace, c.headers, c.body, c.payload,
           exists (select from inbound_queue q where q.event_id = e.id) as "isQueued"
         from inbound_event e join inbound_content c on c.environment_id = e.environment_id and c.id = e.id
         where e.source_id = :sourceId order by e.id`,
        { sourceId },
      ),
    account: (id: string) => expectJson('GET', `${app.url}/integrated-account/${id}`, environmentToken),
  }
}

/** The signature of a body as the third parties of the tests make it. */
export function signatureOf(body: string | Uint8Array, secret = SECRET): string {
  return createHmac('sha256', secret).update(body).digest('hex')
}
