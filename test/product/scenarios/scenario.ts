import { afterAll, afterEach, expect, vi } from 'vitest'
import { EnvironmentIntegrationService } from '../../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegratedAccountService } from '../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../../gen/patchbay/v1/integration_service_pb.ts'
import type { Json, JsonObject } from '../../../src/foundation/json/index.ts'
import { startTestApp } from '../../support/app.ts'
import { EVENTUALLY } from '../../support/eventually.ts'
import { firstTenant, freshName, idOf } from '../../support/seeded-tenant.ts'
import { startUpstream, type Upstream } from '../../support/upstream.ts'

/** The product as its user has it: an API, a worker, and third parties that answer what a test wrote down. */
export interface Scenario {
  /** A third party that is expected to be called as scripted; verified after each test. */
  upstream(): Promise<Upstream>
  /** Installs a definition and connects an account; resolves once the account is in that status. */
  connect(definition: JsonObject, credentials: JsonObject, status?: string): Promise<Account>
}

/** A connected account, called over REST. */
interface Account {
  readonly id: string
  call(verb: string, path: string, body?: Json): Promise<Answer>
  /** A request that does not go to the third party, without the account. */
  request(verb: string, path: string, body?: Json): Promise<Answer>
  read(): Promise<JsonObject>
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly json: JsonObject
  /** The reason of a rejection. */
  readonly reason: string | undefined
}

/** Starts the product for one test file. */
export async function startScenario(): Promise<Scenario> {
  const app = await startTestApp({ PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' })
  const tenant = firstTenant(app)
  app.startWorker()
  const rest = async (verb: string, path: string, body?: Json): Promise<Answer> => {
    const headers = { authorization: `Bearer ${tenant.environmentToken}`, 'content-type': 'application/json' }
    const init = { method: verb, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    const response = await fetch(`${app.url}${path}`, init)
    const json = (await response.json()) as JsonObject & { readonly error?: { details?: { reason?: string }[] } }
    return { status: response.status, headers: response.headers, json, reason: json.error?.details?.[0]?.reason }
  }
  return {
    async upstream() {
      const upstream = await startUpstream()
      afterEach(() => upstream.verify())
      afterAll(() => upstream[Symbol.asyncDispose]())
      return upstream
    },
    async connect(definition, credentials, status = 'active') {
      const team = app.client('connect', { token: tenant.teamToken })
      const environment = app.client('connect', { token: tenant.environmentToken })
      const integration = { name: freshName('scenario'), config: definition }
      const integrationId = await idOf(team, IntegrationService.method.createIntegration, integration)
      const installed = { integration_id: integrationId }
      const installationId = await idOf(
        environment,
        EnvironmentIntegrationService.method.createEnvironmentIntegration,
        installed,
      )
      const account = { environment_integration_id: installationId, tenant_id: 'acme', credentials }
      const id = await idOf(environment, IntegratedAccountService.method.createIntegratedAccount, account)
      const read = async () => (await rest('GET', `/integrated-account/${id}`)).json
      await vi.waitFor(async () => expect((await read()).status).toBe(status), EVENTUALLY)
      const at = (path: string) => `${path}${path.includes('?') ? '&' : '?'}integrated_account_id=${id}`
      return { id, read, request: rest, call: (verb, path, body) => rest(verb, at(path), body) }
    },
  }
}
