import { afterAll, afterEach } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import type { AuthorizationRedirect, AuthorizationResult, TokenSet } from '../../../../src/engine/formats/index.ts'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  type AuthorizationTarget,
  beginAuthorization,
  completeAuthorization,
  revokeAuthorization,
} from '../../../../src/platform/accounts/authorization.ts'
import type { ResolvedAccount } from '../../../../src/platform/accounts/index.ts'
import { requestToken } from '../../../../src/platform/accounts/request-token.ts'
import { resolveAccount, tokenRulesOf, withToken } from '../../../../src/platform/accounts/resolved-account.ts'
import type { AccountWithDefinition } from '../../../../src/platform/accounts/sql/integrated-account.ts'
import { startUpstream } from '../../../support/upstream.ts'

export const NOW = new Date('2026-01-01T00:00:00Z')
export const REDIRECT_URI = 'https://patchbay.example/connect/callback'
export const STATE = 'a-state-that-is-used-once-and-hashed-in-the-row'

/** A consent that is given by script. `{{env.HOST}}` is the address of the third party. */
export interface Consent {
  readonly format?: string
  readonly config: JsonObject
  readonly fields?: JsonObject
  readonly environmentVariables?: JsonObject
  readonly scopes?: readonly string[]
}

/** The functions of a consent over real sockets, and a third party that answers what a test wrote down. @param now default: `NOW` */
export async function consentFixture(now: () => Date = () => NOW) {
  const upstream = await startUpstream()
  const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
  const evaluator = createEvaluator()
  let elapsedMs = 0
  let stepMs = 0
  const clock = {
    now,
    monotonicMs: () => {
      elapsedMs += stepMs
      return elapsedMs
    },
    sleep: () => Promise.resolve(),
  }
  const deps = { http, evaluator, clock, proxyWithoutRefresh: createProxy({ http, evaluator, clock }) }
  afterEach(() => {
    stepMs = 0
    upstream.verify()
  })
  afterAll(() => evaluator[Symbol.asyncDispose]())
  afterAll(() => http[Symbol.asyncDispose]())
  afterAll(() => upstream[Symbol.asyncDispose]())

  function targetOf({
    format = 'oauth2',
    config,
    fields = {},
    environmentVariables = {},
  }: Consent): AuthorizationTarget {
    const plan = compilePlan({ base_url: upstream.url, credentials: { format, config } })
    const variables = { HOST: upstream.url, ...environmentVariables }
    return {
      plan,
      credential: format,
      environmentId: '',
      linkSessionId: '',
      environmentVariables: variables,
      fields,
      context: {},
    }
  }

  /** An account with a token, as the engine would load it. */
  function accountOf(consent: Consent, token: TokenSet): ResolvedAccount {
    const { plan, environmentVariables } = targetOf(consent)
    const account = {
      credential: consent.format ?? 'oauth2',
      authenticationMethod: (consent.format ?? 'oauth2') === 'oauth2' ? 'oauth2' : 'vendor_oauth',
      context: consent.fields ?? {},
    } as unknown as AccountWithDefinition
    const definition = { plan, environmentVariables, connection: {} } as unknown as Parameters<typeof resolveAccount>[1]
    return withToken(resolveAccount(account, definition, {}), { ...token, version: 1, obtainedAt: now() })
  }

  return {
    upstream,
    /** Lets the requests of a token run into their deadline after a fraction of a second. */
    hurry: () => {
      stepMs = 24_800
    },
    async begin(consent: Consent): Promise<AuthorizationRedirect> {
      const start = { redirectUri: REDIRECT_URI, state: STATE, scopes: consent.scopes ?? [] }
      const begun = await beginAuthorization(deps, targetOf(consent), start)
      if (begun.kind !== 'redirect') throw new Error(`${begun.code}: ${begun.message}`)
      return begun
    },
    tryBegin: (consent: Consent) =>
      beginAuthorization(deps, targetOf(consent), { redirectUri: REDIRECT_URI, state: STATE, scopes: [] }),
    complete: (consent: Consent, params: Readonly<Record<string, string>>, secrets: JsonObject) =>
      completeAuthorization(deps, targetOf(consent), { params, redirectUri: REDIRECT_URI, secrets }),
    async refresh(consent: Consent, token: TokenSet) {
      const resolved = accountOf(consent, token)
      const rules = tokenRulesOf(resolved)
      if (rules?.canRequestToken(token) !== true) throw new Error('the token cannot be refreshed')
      return await requestToken(deps, rules, resolved, clock.monotonicMs())
    },
    revoke: (consent: Consent, token: TokenSet) => revokeAuthorization(deps, accountOf(consent, token)),
  }
}

/** The grant of a result. */
export function grantOf(result: AuthorizationResult): Extract<AuthorizationResult, { kind: 'granted' }> {
  if (result.kind !== 'granted') throw new Error(`no grant: ${JSON.stringify(result)}`)
  return result
}
