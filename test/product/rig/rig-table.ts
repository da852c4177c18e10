import { compilePlan, resolveConfig } from '../../../src/engine/definitions/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../src/foundation/json/index.ts'
import { type GoldenCall, readGoldenFile } from '../../unit/engine/catalog/golden-file.ts'
import { type OAuthGoldenFile, readOAuthGoldenFile, redirectPlan } from '../../unit/engine/catalog/oauth-requests.ts'
import { shipped } from '../../unit/engine/catalog/shipped.ts'
import { type GoldenWebhooks, readGoldenWebhooks } from '../../unit/engine/catalog/webhook-journey.ts'
import type { Visit } from './connect.ts'
import type { ProviderScript } from './provider.ts'
import { OTHER_CREDENTIALS, PROVIDERS, type ProviderTable } from './providers.ts'
import { hasEvents, lookupValueOf } from './webhook.ts'

/** What a definition goes through the rig with: its golden files, and what they lack. */
export interface RigTable {
  readonly name: string
  readonly script: ProviderScript
  readonly visit: Visit
  /** One call of each list method. */
  readonly lists: readonly GoldenCall[]
  readonly get: GoldenCall | undefined
  readonly write: GoldenCall | undefined
  /** A call that shows whether the account works. */
  readonly probe: GoldenCall | undefined
  /** Seconds until a token that can be refreshed ends; `undefined`: there is none. */
  readonly expiresIn: number | undefined
  readonly webhooks: GoldenWebhooks | undefined
  /** The key of the context that names the account in a delivery to the address of all accounts. */
  readonly lookupField: string | undefined
  /** What the customer's application gives the account beforehand. */
  readonly linkContext: JsonObject
  readonly own: ProviderTable
  isTokenUrl(url: URL): boolean
  /** A recorded text with the values of a connected account instead of those of the recorded one. */
  rebase(text: string, context: JsonObject): string
}

/**
 * The table of a journey.
 *
 * @param key name of a shipped definition, or that and the key of a credential
 * @throws when it has none
 */
export function rigTable(key: string): RigTable {
  const [name = '', credential] = key.split(' ')
  const own = credential === undefined ? PROVIDERS[name] : otherTable(name, credential)
  const golden = readGoldenFile(name)
  if (own === undefined || golden === undefined)
    throw new Error(`${name} has no table in test/product/rig/providers.ts`)
  const { config } = shipped(name)
  const redirect = own.credential === undefined ? redirectPlan(name) : undefined
  const oauth = redirect === undefined ? own.token : readOAuthGoldenFile(name)
  const plan = compilePlan(resolveConfig(config, {}).config)
  const connect = redirect ?? plan.credentials.find(({ key }) => key === (own.credential ?? plan.credentials[0]?.key))
  if (connect === undefined) throw new Error(`${name} has no credential ${own.credential}`)
  const webhooks = readGoldenWebhooks(name)
  const variables = readBy(config, {
    CLIENT_ID: 'the-client',
    CLIENT_SECRET: 'the-secret',
    ...(golden.account.environmentVariables as Record<string, string>),
    ...(oauth?.environment as Record<string, string>),
    ...(webhooks?.account.environmentVariables as Record<string, string>),
    ...own.variables,
  })
  const calls = golden.calls.filter(isSuccess)
  const fields: JsonObject = {
    ...golden.account.context,
    ...golden.account.credentials,
    ...oauth?.fields,
    ...own.fields,
  }
  const get = calls.find(({ call }) => call.endsWith('.get'))
  const lists = [
    ...Map.groupBy(
      calls.filter(({ call }) => call.endsWith('.list')),
      ({ call }) => call,
    ).values(),
  ]
    .map((each) => each.find(({ next }) => next !== undefined) ?? each[0])
    .filter((call) => call !== undefined)
  const lookupField = plan.webhook?.contextLookup?.field
  const named = webhooks?.deliveries.find(hasEvents)
  const wanted = named === undefined ? undefined : lookupValueOf(named)
  const known = lookupField === undefined ? undefined : (oauth?.context?.[lookupField] ?? oauth?.identity)
  const isOther = typeof known === 'string' || typeof known === 'number'
  const adaptations =
    own.answersSay ?? (isOther && wanted !== undefined ? [[String(known), String(wanted)] as const] : [])
  const write = calls.find(({ call, request }) => request.method !== 'GET' && /\.(create|update|delete)$/.test(call))
  return {
    name,
    script: {
      variables,
      oauth,
      answers: own.answers ?? {},
      recorded: recordedAnswers(calls, (text) => replaced(text, adaptations)),
      verificationPath: verificationPath(config, connect.key),
      documents: webhooks?.documents ?? {},
      adapt: (text) => replaced(text, adaptations),
    },
    visit: {
      credential: connect.key,
      fields,
      redirect: redirect === undefined ? undefined : JSON.parse(replaced(JSON.stringify(oauth?.redirect), adaptations)),
      client: oauth?.authorize.includes('the-client') === true ? 'the-client' : undefined,
    },
    lists,
    get,
    write,
    probe: get ?? lists[0],
    expiresIn: oauth?.refresh === undefined ? undefined : oauth.expires_in,
    webhooks,
    lookupField: own.webhook === 'account' ? undefined : lookupField,
    own,
    linkContext: own.context ?? {},
    isTokenUrl: (url) => tokenAddresses(oauth).has(url.origin + url.pathname),
    rebase(text, context) {
      const values = Object.entries(golden.account.context ?? {}).flatMap(([key, value]) => {
        const other = context[key]
        return typeof value === 'string' && typeof other === 'string' && value.length > 2
          ? [[value, other] as const]
          : []
      })
      const encoded = values.map((pair) => pair.map(encodeURIComponent) as [string, string])
      return replaced(text, [...values, ...encoded, ...(own.recordedFor ?? [])])
    },
  }
}

function isSuccess({ call, outcome = 'ok', answer }: GoldenCall): boolean {
  return !call.startsWith('_.') && outcome === 'ok' && (answer?.status ?? 200) < 300
}

/** What ordinary calls are answered, by path. */
function recordedAnswers(
  calls: readonly GoldenCall[],
  adapt: (text: string) => string,
): Readonly<Record<string, Json>> {
  const known: Record<string, Json> = {}
  for (const { request, answer } of calls)
    if (request.method === 'GET' && answer?.json !== undefined)
      known[new URL(adapt(request.url)).pathname] ??= answer.json
  return known
}

/** The end of the path of the verification request, without placeholders. */
function verificationPath(config: JsonObject, key: string): string | undefined {
  const credentials = isJsonObject(config.credentials) ? config.credentials[key] : undefined
  const settings = isJsonObject(credentials) && isJsonObject(credentials.config) ? credentials.config : {}
  const path = isJsonObject(settings.verification) ? settings.verification.path : undefined
  return typeof path === 'string' ? path.replace(/\{\{.*\}\}/, '') : undefined
}

function tokenAddresses(oauth: OAuthGoldenFile | undefined): ReadonlySet<string> {
  const requests = [oauth?.exchange, oauth?.extend, oauth?.refresh, oauth?.request_token]
  return new Set(requests.flatMap((request) => (request === undefined ? [] : [originAndPath(request.url)])))
}

function originAndPath(text: string): string {
  const { origin, pathname } = new URL(text)
  return origin + pathname
}

/** Deliveries go to the address of the account: the installation has that of another. */
function otherTable(name: string, credential: string): ProviderTable {
  const { answers, variables, context } = PROVIDERS[name] ?? {}
  const { identity_request: request, identity_answer: answer } = readOAuthGoldenFile(name)
  const identity = request === undefined || answer === undefined ? {} : { [new URL(request.url).pathname]: answer }
  const own = OTHER_CREDENTIALS[`${name} ${credential}`]
  return {
    credential,
    webhook: 'account',
    variables: variables ?? {},
    context: context ?? {},
    ...own,
    answers: { ...identity, ...answers, ...own?.answers },
  }
}

/** The variables that the definition reads: what its documentation asks for. */
function readBy(config: JsonObject, values: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const text = JSON.stringify(config)
  return Object.fromEntries(Object.entries(values).filter(([name]) => new RegExp(`\\b${name}\\b`).test(text)))
}

function replaced(text: string, pairs: readonly (readonly [from: string, to: string])[]): string {
  return pairs.reduce((result, [from, to]) => result.replaceAll(from, to), text)
}
