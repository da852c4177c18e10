import { afterAll } from 'vitest'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import type { Failure } from '../../../../src/foundation/base/index.ts'
import { execute, query, queryOne } from '../../../../src/foundation/database/index.ts'
import type { EgressRequest, EgressResponse } from '../../../../src/foundation/egress/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  type AccountStatus,
  createTokenProvider,
  type IntegratedAccountInput,
  loadAccountForCall,
} from '../../../../src/platform/accounts/index.ts'
import { CONFIG } from '../integrations/fixture.ts'
import { accountsFixture } from './fixture.ts'

const AUTH = { tokenHost: 'https://auth.example.com', tokenPath: '/token' }

/** Tokens for the account's own client. */
export const CLIENT_CREDENTIALS: JsonObject = {
  ...CONFIG,
  authorization: { format: 'bearer' },
  credentials: { format: 'oauth2_client_credentials', config: { auth: AUTH } },
}

/** Tokens by the customer's consent. */
export const OAUTH2: JsonObject = {
  ...CONFIG,
  authorization: { format: 'bearer' },
  credentials: {
    format: 'oauth2',
    config: {
      client: { id: 'app', secret: 'the-clients-secret' },
      auth: AUTH,
      fields: [{ name: 'subdomain', required: true }],
      context_from_token: { api_domain: 'api_domain', user_id: 'user.id', leaked: 'access_token', user: 'user' },
    },
  },
}

/** What a token endpoint answers: JSON with status 200, or all of it. */
export type TokenServerAnswer =
  | JsonObject
  | { readonly status: number; readonly text: string; readonly headers?: Record<string, string> }
  | Failure

/** A token endpoint that answers in turn, the last answer for ever. */
export interface TokenServer {
  readonly http: { send(request: EgressRequest): Promise<EgressResponse> }
  /** Parameters of the requests so far. */
  readonly asked: Record<string, string>[]
  answer(...answers: readonly TokenServerAnswer[]): void
  /** Makes requests wait; call what it returns to let them go on. */
  hold(): () => void
}

function tokenServer(): TokenServer {
  let answers: readonly TokenServerAnswer[] = []
  let gate: Promise<void> = Promise.resolve()
  const asked: Record<string, string>[] = []
  return {
    asked,
    answer: (...given) => {
      asked.length = 0
      answers = given
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>()
      gate = promise
      return resolve
    },
    http: {
      async send({ url, body }) {
        asked.push(Object.fromEntries(new URLSearchParams(String(body ?? ''))))
        const answer = answers[Math.min(asked.length, answers.length) - 1]
        if (answer === undefined) throw new Error(`nothing to answer to ${url}`)
        await gate
        if (answer instanceof Error) throw answer
        const { status, text, headers } = isWhole(answer)
          ? answer
          : { status: 200, text: JSON.stringify(answer), headers: {} }
        return { status, headers: headers ?? {}, body: Buffer.from(text), url }
      },
    },
  }
}

function isWhole(
  answer: TokenServerAnswer,
): answer is { status: number; text: string; headers?: Record<string, string> } {
  return 'status' in answer && typeof answer.status === 'number' && 'text' in answer
}

/** A JSON answer with a status. */
export function errorResponse(status: number, body: Json): TokenServerAnswer {
  return { status, text: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
}

/** The accounts fixture, a token endpoint and a clock that moves by hand. */
export async function tokensFixture() {
  let now = Date.now()
  let sleeps = 0
  const clock = {
    now: () => new Date(now),
    monotonicMs: () => now,
    sleep: () => {
      sleeps += 1
      return new Promise<void>((resolve) => setImmediate(resolve))
    },
  }
  const fixture = await accountsFixture(clock)
  const { database, tx, own, accountDeps, addInstallation, connect, secrets } = fixture
  const evaluator = createEvaluator()
  afterAll(() => evaluator[Symbol.asyncDispose]())
  const server = tokenServer()
  const http = { ...server.http, stream: () => Promise.reject(new Error('tokens are not streamed')) }
  const proxyWithoutRefresh = createProxy({ http, evaluator, clock })
  const tokenDeps = { ...accountDeps, database, evaluator, http, proxyWithoutRefresh }

  /** What one process has: a token provider of its own. */
  function process() {
    const tokens = createTokenProvider(tokenDeps)
    const deps = { ...tokenDeps, tokens }
    return {
      ...deps,
      load: (id: string, purpose: 'call' | 'sync' | 'activation' = 'call') =>
        loadAccountForCall(deps, own.environmentId, id, purpose),
    }
  }

  const installations = new Map<JsonObject, string>()
  async function installed(config: JsonObject): Promise<string> {
    const id = installations.get(config) ?? (await addInstallation(config)).id
    installations.set(config, id)
    return id
  }

  return {
    ...fixture,
    tokenDeps,
    server,
    clock,
    process,
    /** How often the clock was asked to sleep so far. */
    sleeps: () => sleeps,
    pass: (ms: number) => {
      now += ms
    },
    /** An active account with a client of its own and no token yet. */
    async addClient(config: JsonObject = CLIENT_CREDENTIALS, input: Partial<IntegratedAccountInput> = {}) {
      const environmentIntegrationId = await installed(config)
      const credentials = { client_id: 'the-id', client_secret: 'the-accounts-secret' }
      const { id } = await connect({ environmentIntegrationId, credentials, ...input })
      await activate(id)
      return id
    },
    /** An active account whose token was granted elsewhere. */
    async addConsent(token: JsonObject, config: JsonObject = OAUTH2) {
      const environmentIntegrationId = await installed(config)
      const { id } = await connect({ environmentIntegrationId, credentials: { subdomain: 'acme', ...token } })
      await activate(id)
      return id
    },
    installed,
    statusOf: async (id: string) => {
      const found = await queryOne<{ status: AccountStatus; lastError: string }>(
        tx,
        'select status, last_error from integrated_account where id = :id',
        { id },
      )
      return { status: found?.status, lastError: found?.lastError }
    },
    contextOf: async (id: string) =>
      (await queryOne<{ context: JsonObject }>(tx, 'select context from integrated_account where id = :id', { id }))
        ?.context,
    /** What is stored about the account's token. */
    tokenRow: async (id: string) =>
      (
        await query<Record<string, unknown>>(tx, 'select * from account_token where integrated_account_id = :id', {
          id,
        })
      )[0],
    /** Changes what is stored about the account's token. */
    alterToken: (id: string, change: string) =>
      execute(tx, `update account_token set ${change} where integrated_account_id = :id`, { id }),
    secretsOf: (id: string) =>
      secrets.get(tx, { ownerId: own.environmentId, subjectType: 'integrated_account', subjectId: id }),
  }

  async function activate(id: string): Promise<void> {
    await execute(tx, `update integrated_account set status = 'active' where id = :id`, { id })
  }
}
