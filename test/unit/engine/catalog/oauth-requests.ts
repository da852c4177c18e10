import { createHash } from 'node:crypto'
import { type ConnectPlan, compilePlan, resolveConfig } from '../../../../src/engine/definitions/index.ts'
import { type AccountValues, createEvaluator, type TemplateScope } from '../../../../src/engine/expressions/index.ts'
import type { TokenSet } from '../../../../src/engine/formats/index.ts'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import type { EgressRequest, EgressResponse } from '../../../../src/foundation/egress/index.ts'
import { getAtPath, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { beginAuthorization, completeAuthorization } from '../../../../src/platform/accounts/authorization.ts'
import { createTokenContext } from '../../../../src/platform/accounts/token-context.ts'
import { dataFiles, readData } from '../../../support/data-files.ts'
import type { GoldenRequest } from './golden-file.ts'
import { shipped } from './shipped.ts'

/** What a definition sends while an account connects, stays connected and is deleted. */
export interface OAuthGoldenFile {
  /** Variables of the environment beside CLIENT_ID and CLIENT_SECRET. */
  readonly environment?: JsonObject
  /** What the customer fills in before the redirect. */
  readonly fields?: JsonObject
  /** Scopes of the link beside those of the definition. */
  readonly scopes?: readonly string[]
  /** OAuth 1.0a: the request for a request token, and its answer. */
  readonly request_token?: GoldenRequest
  readonly request_token_answer?: string
  /** Address of the consent page. */
  readonly authorize: string
  /** Parameters with which the browser comes back. */
  readonly redirect: Readonly<Record<string, string>>
  /** The exchange of the code. */
  readonly exchange: GoldenRequest
  /** Its answer as the provider documents it: JSON, or a form. */
  readonly answer: JsonObject | string
  /** A second exchange, for a token that lives longer, and its answer. */
  readonly extend?: GoldenRequest
  readonly extend_answer?: JsonObject
  readonly expires_in?: number
  readonly scopes_missing?: readonly string[]
  /** Context keys that the redirect and the answer fill. */
  readonly context?: JsonObject
  /** Id of the customer's account, from the answer to the request below, or to the exchange. */
  readonly identity?: Json
  readonly identity_request?: GoldenRequest
  readonly identity_answer?: Json
  /** Absent: the token cannot be refreshed. */
  readonly refresh?: GoldenRequest
  /** Absent: the definition names no address for it. */
  readonly revoke?: GoldenRequest
}

/** What a test gives; all else is computed. */
export type OAuthGoldenInput = Pick<
  OAuthGoldenFile,
  | 'environment'
  | 'fields'
  | 'scopes'
  | 'request_token_answer'
  | 'redirect'
  | 'answer'
  | 'extend_answer'
  | 'identity_answer'
>

const FOLDER = 'catalog/oauth'
const REDIRECT_URI = 'https://patchbay.example.com/connect/callback'
const STATE = 'the-state'
const NOW = new Date('2026-01-01T00:00:00Z')

const evaluator = createEvaluator()
export const closeEvaluator = () => evaluator[Symbol.asyncDispose]()

/** Names of the golden files. */
export const OAUTH_GOLDEN_NAMES: readonly string[] = dataFiles(FOLDER).map((file) => file.replace(/\.json$/, ''))

/** The golden file of a definition. */
export function readOAuthGoldenFile(name: string): OAuthGoldenFile {
  const golden = readData<OAuthGoldenFile>(`${FOLDER}/${name}.json`)
  if (golden === undefined) throw new Error(`${name} connects by OAuth, but has no test/data/${FOLDER}/${name}.json`)
  return golden
}

/** The way of connecting that takes a redirect; `undefined` where a definition has none. */
export function redirectPlan(name: string): ConnectPlan | undefined {
  return planOf(name).credentials.find(({ authorization }) => authorization !== undefined)
}

/** Connects, refreshes and revokes against the given answers; random texts are replaced by their names in `<>`. */
export async function showOAuth(name: string, input: OAuthGoldenInput): Promise<OAuthGoldenFile> {
  const { environment, fields = {}, scopes = [], redirect, answer } = input
  const connect = redirectPlan(name)
  if (connect?.token === undefined) throw new Error(`${name} has no redirect`)
  const environmentVariables = { CLIENT_ID: 'the-client', CLIENT_SECRET: 'the-secret', ...environment }
  const target = {
    plan: planOf(name),
    credential: connect.key,
    environmentId: 'e',
    linkSessionId: 's',
    environmentVariables,
    fields,
    context: {},
  }
  const sent: EgressRequest[] = []
  const begun = await beginAuthorization(depsAnswering(sent, input.request_token_answer ?? ''), target, {
    redirectUri: REDIRECT_URI,
    state: STATE,
    scopes,
  })
  if (begun.kind !== 'redirect') throw new Error(`${begun.code}: ${begun.message}`)
  const show = replacing(begun.url, begun.secrets)
  const [requestToken] = sent.splice(0)
  const done = await completeAuthorization(depsAnswering(sent, answer, input.extend_answer), target, {
    params: redirect,
    redirectUri: REDIRECT_URI,
    secrets: begun.secrets,
  })
  if (done.kind !== 'granted') throw new Error(JSON.stringify(done))
  const [exchange, extend] = sent.splice(0)
  const { token } = done
  const context = { ...fields, ...done.context, ...contextFromToken(connect, token) }
  const account = { credentials: { oauth: { token: token.fields } }, context, environmentVariables }
  const later = await laterRequests(connect, { account, call: {} }, token)
  const identity = await identityOf(name, account, token, input.identity_answer)
  return {
    ...input,
    ...(requestToken === undefined ? {} : { request_token: show(requestToken) }),
    authorize: show.text(begun.url),
    redirect,
    exchange: show(requireSent(exchange)),
    answer,
    ...(extend === undefined ? {} : { extend: show(extend) }),
    ...(token.expiresAt === undefined ? {} : { expires_in: (token.expiresAt.getTime() - NOW.getTime()) / 1000 }),
    ...(done.missingScopes.length === 0 ? {} : { scopes_missing: done.missingScopes }),
    ...(Object.keys(context).length === Object.keys(fields).length ? {} : { context: without(context, fields) }),
    ...identity,
    ...later,
  }
}

function planOf(name: string) {
  return compilePlan(resolveConfig(shipped(name).config, {}).config)
}

/** Asks who the account is; without a request, reads it from the token answer. */
async function identityOf(
  name: string,
  account: AccountValues,
  token: TokenSet,
  answer: Json = {},
): Promise<Pick<OAuthGoldenFile, 'identity' | 'identity_request'>> {
  const { identity, key } = redirectPlan(name) ?? {}
  if (identity === undefined || key === undefined) return {}
  // What fills the context is asked later.
  if (identity.kind === 'context') return {}
  if (identity.request === undefined) return { identity: getAtPath(token.fields, identity.path) ?? null }
  const sent: EgressRequest[] = []
  const access = { id: 'a', isSandbox: false, ...account }
  const target = { kind: 'verification', credential: key, of: 'identity' } as const
  const proxy = createProxy({ ...depsAnswering(sent, answer), nonce: () => 'n0nce' })
  const { outcome } = await proxy.runAction(planOf(name), access, { target })
  if (outcome.kind !== 'ok') throw new Error(JSON.stringify(outcome))
  const found = getAtPath(outcome.result, identity.path) ?? null
  return { identity: found, identity_request: shownRequest(requireSent(sent[0])) }
}

async function laterRequests(
  { token: rules }: ConnectPlan,
  scope: TemplateScope,
  token: TokenSet,
): Promise<Pick<OAuthGoldenFile, 'refresh' | 'revoke'>> {
  const sent: EgressRequest[] = []
  const context = createTokenContext(
    depsAnswering(sent, {}),
    { plan: { secrets: [], tokenFieldsSent: new Set() }, environmentId: 'e', environmentVariables: {} },
    () => {},
  )
  if (rules?.canRequestToken(token)) await rules.requestToken(context, scope, token)
  const [refresh] = sent.splice(0)
  await rules?.revokeToken?.(context, scope, token)
  const [revoke] = sent
  return {
    ...(refresh === undefined ? {} : { refresh: shownRequest(refresh) }),
    ...(revoke === undefined ? {} : { revoke: shownRequest(revoke) }),
  }
}

function depsAnswering(sent: EgressRequest[], first: Json, second: Json = first) {
  const send = async (request: EgressRequest): Promise<EgressResponse> => {
    const answer = sent.push(request) === 1 ? first : second
    const text = typeof answer === 'string' ? answer : JSON.stringify(answer)
    const type = typeof answer === 'string' ? 'application/x-www-form-urlencoded' : 'application/json'
    return { status: 200, headers: { 'content-type': type }, body: Buffer.from(text), url: request.url }
  }
  const stream = () => Promise.reject(new Error('token requests do not stream'))
  return { http: { send, stream }, evaluator, clock: { now: () => NOW, monotonicMs: () => 0, sleep: async () => {} } }
}

function requireSent(request: EgressRequest | undefined): EgressRequest {
  if (request === undefined) throw new Error('nothing was sent')
  return request
}

function contextFromToken({ token }: ConnectPlan, { fields }: TokenSet): JsonObject {
  const found = (token?.contextFromToken ?? []).map(([key, path]) => [key, getAtPath(fields, path)] as const)
  return Object.fromEntries(found.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])))
}

function without(object: JsonObject, keys: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !(key in keys)))
}

/** Replaces what is random in an address or request. */
function replacing(url: string, secrets: JsonObject) {
  const { verifier } = secrets
  const nonce = new URL(url.replace('#', '%23')).searchParams.get('nonce') ?? undefined
  const names: readonly (readonly [string, string])[] = [
    ...(typeof verifier === 'string'
      ? [[verifier, '<code_verifier>'] as const, [challengeOf(verifier), '<code_challenge>'] as const]
      : []),
    ...(nonce === undefined ? [] : [[nonce, '<random>'] as const]),
  ]
  const text = (value: string) => names.reduce((all, [secret, name]) => all.replaceAll(secret, name), value)
  const show = (request: EgressRequest) => JSON.parse(text(JSON.stringify(shownRequest(request)))) as GoldenRequest
  return Object.assign(show, { text })
}

function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}

function shownRequest({ method, url, headers, body }: EgressRequest): GoldenRequest {
  const shown = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, shownHeader(name, value)]))
  if (body === undefined) return { method, url, headers: shown }
  const text = typeof body === 'string' ? body : Buffer.from(body).toString()
  const isJson = /\bjson\b/.test(headers['content-type'] ?? '')
  return { method, url, headers: shown, body: isJson ? (JSON.parse(text) as Json) : text }
}

/** HTTP Basic as the pair that it encodes; signatures of OAuth 1.0a without what changes with each request. */
function shownHeader(name: string, value: string): string {
  if (name !== 'authorization') return value
  if (value.startsWith('Basic ')) return `Basic <base64 of ${Buffer.from(value.slice(6), 'base64').toString()}>`
  return value.replace(/(oauth_(?:nonce|timestamp|signature))="[^"]*"/g, '$1="<$1>"')
}
