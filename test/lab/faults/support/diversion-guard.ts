import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { z } from 'zod'
import { resolvedSchema } from '../../../../src/engine/definitions/config-schema.ts'
import { fieldRoles } from '../../../../src/engine/formats/schema-types.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { callRest } from '../../../support/rest.ts'
import {
  createApiEnvironment,
  createApiTenant,
  freshName,
  type SeedTarget,
  type Tenant,
} from '../../../support/seeded-tenant.ts'

/** A running service with a worker. */
export interface DiversionTarget extends SeedTarget {
  readonly url: string
}

/** What came of the attacks. */
export interface DiversionReport {
  readonly attacks: number
  /** Secrets that reached the host of an attacker, with the way they took. */
  readonly leaks: readonly string[]
  /** Cases in which a secret reached the third party: without any the guard would prove nothing. */
  readonly reached: number
  /** Settings of the schema that are addresses and that no case has a definition for. */
  readonly unknown: readonly string[]
}

/** The application, with its environment token, is none: it holds the credentials it administers. */
const ATTACKERS = ['other team', 'customer', 'caller'] as const

type Attacker = (typeof ATTACKERS)[number]

/** A server that keeps everything it is sent, and answers everything well. */
async function startHost() {
  let seen = ''
  const server = createServer((request, response) => {
    void textOf(request).then((text) => {
      seen += text
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ access_token: 'issued', token_type: 'bearer', expires_in: 3_600, items: [] }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    take: () => {
      const text = seen
      seen = ''
      return text
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** All of a request, with what is encoded in its authorization. */
async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const { authorization = '' } = request.headers
  const decoded = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString()
  return [request.url, JSON.stringify(request.headers), decoded, Buffer.concat(chunks).toString(), ''].join('\n')
}

const HEADER_SECRET = 'canary-of-the-definition-header'
const CLIENT_SECRET = 'canary-of-the-application-client'
const CUSTOMER_SECRET = 'canary-of-the-customers-account'
const CANARIES = [HEADER_SECRET, CLIENT_SECRET, CUSTOMER_SECRET]

/** Which addresses of the schema a row stands for, and a definition with that address. */
interface SettingRow {
  readonly settings: RegExp
  readonly define: (address: string, vendor: string) => JsonObject
}

const step = (request: JsonObject) => ({ type: 'request', config: { method: 'GET', path: '/step', ...request } })
const key = (more: JsonObject = {}) => ({ format: 'api_key', config: { fields: FIELDS, ...more } })
const client = (auth: JsonObject) => ({
  format: 'oauth2_client_credentials',
  config: { client: { id: 'app', secret: CLIENT_SECRET }, auth: { tokenPath: '/token', ...auth }, fields: FIELDS },
})
const FIELDS: Json = [
  { name: 'api_key', type: 'password', required: true },
  { name: 'host', required: false },
]

/** Every address of the schema belongs to a row; one that is added needs one. */
const ROWS: Readonly<Record<string, SettingRow>> = {
  base_url: { settings: /^base_url$/, define: (address) => ({ base_url: address, credentials: key() }) },
  'base_url of a method': {
    settings: /^resources\.\*\.\*\.base_url$/,
    define: (address, vendor) => ({ base_url: vendor, credentials: key(), method: { base_url: address } }),
  },
  'base_url of a step': {
    settings: /^actions\..*base_url$|^webhook\.subscription\..*base_url$/,
    define: (address, vendor) => ({
      base_url: vendor,
      credentials: key(),
      actions: { probe: step({ base_url: address }), post_install: step({ base_url: address }) },
    }),
  },
  'base_url of a verification': {
    settings: /\.(?:verification|identity\.request|revocation\..*)\.base_url$|\.request\.base_url$/,
    define: (address, vendor) => ({
      base_url: vendor,
      credentials: key({ verification: { method: 'GET', path: '/verify', base_url: address } }),
    }),
  },
  'base_url of a token request': {
    settings: /(?:token|refresh)_request.*base_url$/,
    define: (address, vendor) => ({
      base_url: vendor,
      credentials: {
        format: 'vendor_oauth',
        config: {
          fields: FIELDS,
          token_request: {
            method: 'POST',
            path: '/token',
            base_url: address,
            body: { secret: CLIENT_SECRET, key: '{{api_key}}' },
          },
          token_expression: 'body.access_token',
        },
      },
    }),
  },
  tokenHost: {
    settings: /\.(?:tokenHost|refreshHost|revokeHost|authorizeHost|host)$/,
    define: (address, vendor) => ({ base_url: vendor, credentials: client({ tokenHost: address }) }),
  },
  'addresses of OAuth 1.0a': {
    settings: /\.(?:request_token_url|authorize_url|access_token_url)$/,
    define: (address, vendor) => ({
      base_url: vendor,
      credentials: client({ tokenHost: vendor, refreshHost: address }),
    }),
  },
  'keys of senders': {
    settings: /^webhook\..*_url$/,
    define: (address) => ({ base_url: address, credentials: key() }),
  },
}

function definitionOf(row: SettingRow, address: string, vendor: string, fields: Json): JsonObject {
  const { method = {}, ...config } = row.define(address, vendor)
  const text = JSON.stringify({
    headers: { 'x-api-key': HEADER_SECRET },
    authorization: { format: 'header', config: { headers: { 'x-customer': '{{api_key}}' } } },
    retry: { max_attempts: 1 },
    ...config,
    resources: {
      items: { list: { path: '/items', query: { a: '{{query.a}}' }, pagination: null, ...(method as JsonObject) } },
    },
    actions: {
      set_host: { type: 'update_context', config: { expression: '{"host": args.host}' } },
      ...((config.actions as JsonObject | undefined) ?? {}),
    },
  })
  return JSON.parse(text.replaceAll(JSON.stringify(FIELDS), JSON.stringify(fields)))
}

/** Paths of all addresses in the schema, with `*` for any name. */
export function addressSettings(): readonly string[] {
  const found = new Set<string>()
  const seen = new Set<z.core.$ZodType>()
  const walk = (schema: z.core.$ZodType, path: string): void => {
    if (fieldRoles.get(schema)?.kind === 'url') found.add(path)
    const { def } = (schema as z.core.$ZodTypes)._zod
    if (seen.has(schema)) return
    seen.add(schema)
    const below = (name: string) => (path === '' ? name : `${path}.${name}`)
    if (def.type === 'object') for (const [name, item] of Object.entries(def.shape)) walk(item, below(name))
    else if (def.type === 'record') walk(def.valueType, below('*'))
    else if (def.type === 'array') walk(def.element, below('*'))
    else if (def.type === 'union') for (const option of def.options) walk(option, path)
    else if ('innerType' in def) walk(def.innerType as z.core.$ZodType, path)
    seen.delete(schema)
  }
  walk(resolvedSchema, '')
  return [...found]
}

/** How a value that decides a host is written in an address, and whose it is. */
const ROOTS: Readonly<
  Record<string, { readonly placeholder: string; readonly of: 'environment' | 'account' | 'call' }>
> = {
  env: { placeholder: '{{env.API_URL}}', of: 'environment' },
  environment_variables: { placeholder: '{{environment_variables.API_URL}}', of: 'environment' },
  bare: { placeholder: '{{host}}', of: 'account' },
  context: { placeholder: '{{context.host}}', of: 'account' },
  credentials: { placeholder: '{{credentials.host}}', of: 'account' },
  alternatives: { placeholder: '{{context.site|host|env.API_URL}}', of: 'account' },
  args: { placeholder: '{{args.host}}', of: 'call' },
  query: { placeholder: '{{query.host}}', of: 'call' },
  literal: { placeholder: '', of: 'environment' },
}

/** One way of writing a value. */
interface Writer {
  /** Who may write so beside another team. */
  readonly by?: Attacker
  readonly of: readonly ('environment' | 'account' | 'call')[]
  /** What the attacker's installation, account and calls hold. */
  readonly installation?: (attacker: string) => JsonObject
  readonly account?: (attacker: string) => JsonObject
  readonly afterwards?: (send: Send, ids: Ids, attacker: string) => Promise<unknown>
}

interface Ids {
  readonly installation: string
  readonly account: string
}

type Send = (verb: string, path: string, body?: JsonObject) => ReturnType<typeof callRest>

const WRITERS: Readonly<Record<string, Writer>> = {
  'variable at installation': {
    of: ['environment', 'account'],
    installation: (url) => ({ environment_variables: { API_URL: url } }),
  },
  'variable by PATCH': {
    of: ['environment', 'account'],
    afterwards: (send, { installation }, url) =>
      send('PATCH', `/environment-integration/${installation}`, {
        override: { environment_variables: { API_URL: url } },
      }),
  },
  'base_url by PATCH': {
    of: ['environment', 'account', 'call'],
    afterwards: (send, { installation }, url) =>
      send('PATCH', `/environment-integration/${installation}`, { override: { base_url: url } }),
  },
  'base_url of a method by PATCH': {
    of: ['environment', 'account', 'call'],
    afterwards: (send, { installation }, url) =>
      send('PATCH', `/environment-integration/${installation}`, {
        override: { resources: { items: { list: { base_url: url } } } },
      }),
  },
  'tokenHost by PATCH': {
    of: ['environment', 'account', 'call'],
    afterwards: (send, { installation }, url) =>
      send('PATCH', `/environment-integration/${installation}`, {
        override: { credentials: { config: { auth: { tokenHost: url } } } },
      }),
  },
  'fields without pattern': {
    of: ['account'],
    installation: () => ({ credentials: { config: { fields: FIELDS } } }),
    account: (url) => ({ credentials: { host: url } }),
  },
  'fields by PATCH': {
    of: ['account'],
    afterwards: async (send, { installation, account }, url) => {
      await send('PATCH', `/environment-integration/${installation}`, {
        override: { credentials: { config: { fields: FIELDS } } },
      })
      await send('PATCH', `/integrated-account/${account}`, { context: { host: url } })
    },
  },
  'field at creation': { by: 'customer', of: ['account'], account: (url) => ({ credentials: { host: url } }) },
  'context at creation': { of: ['account'], account: (url) => ({ context: { host: url } }) },
  'another key at creation': { of: ['account'], account: (url) => ({ context: { site: url } }) },
  'context by PATCH': {
    of: ['account'],
    afterwards: (send, { account }, url) => send('PATCH', `/integrated-account/${account}`, { context: { host: url } }),
  },
  'another key by PATCH': {
    of: ['account'],
    afterwards: (send, { account }, url) => send('PATCH', `/integrated-account/${account}`, { context: { site: url } }),
  },
  'credentials by PATCH': {
    of: ['account'],
    afterwards: (send, { account }, url) =>
      send('PATCH', `/integrated-account/${account}/credentials`, { credentials: { host: url } }),
  },
  'an action': {
    by: 'caller',
    of: ['account'],
    afterwards: (send, { account }, url) =>
      send('POST', `/proxy/_/set_host?integrated_account_id=${account}`, { args: { host: url } }),
  },
  'a call': { by: 'caller', of: ['call'] },
  // The control: the secrets reach the third party.
  nothing: { by: 'caller', of: ['environment', 'account', 'call'] },
}

/** Fields of the account: with a pattern that only the third party matches, or any. */
const FIELD_KINDS = ['any', 'pattern'] as const

/** How much is tried. */
export interface DiversionPlan {
  /** Of all cases, one in so many. */
  readonly everyNth: number
}

/** Every address of a definition × every root of a placeholder × every writer × every attacker, with a canary in every secret. */
export async function runDiversionGuard(target: DiversionTarget, plan: DiversionPlan): Promise<DiversionReport> {
  await using vendor = await startHost()
  await using attacker = await startHost()
  const owner = await createApiTenant(target)
  const unknown = addressSettings().filter((path) => !Object.values(ROWS).some(({ settings }) => settings.test(path)))
  const leaks: string[] = []
  let [attacks, reached, at] = [0, 0, 0]
  for (const [setting, row] of Object.entries(ROWS))
    for (const [root, { placeholder, of }] of Object.entries(ROOTS))
      for (const [how, writer] of Object.entries(WRITERS))
        for (const kind of FIELD_KINDS)
          for (const who of ATTACKERS) {
            if (!writer.of.includes(of) || (kind === 'pattern' && of !== 'account')) continue
            if (who !== 'other team' && who !== writer.by) continue
            at += 1
            if (at % plan.everyNth !== 0) continue
            attacks += 1
            const address = placeholder === '' ? vendor.url : placeholder
            const config = definitionOf(row, address, vendor.url, fieldsOf(kind, vendor.url))
            await attack(target, owner, { config, writer, who, vendor: vendor.url, attacker: attacker.url })
            const found = attacker.take()
            // What the attacker has entered itself is its own.
            const own = who === 'caller' ? CANARIES : CANARIES.filter((each) => each !== CUSTOMER_SECRET)
            for (const canary of own)
              if (found.includes(canary)) leaks.push(`${canary}: ${setting} = ${root}, ${how}, fields ${kind}, ${who}`)
            const sent = vendor.take()
            if (CANARIES.some((canary) => sent.includes(canary))) reached += 1
          }
  return { attacks, leaks, reached, unknown }
}

function fieldsOf(kind: (typeof FIELD_KINDS)[number], vendor: string): Json {
  const pattern = `^${vendor.replaceAll('.', '\\.')}$`
  return [
    { name: 'api_key', type: 'password', required: true },
    { name: 'host', required: false, ...(kind === 'any' ? {} : { pattern }) },
  ]
}

interface Attack {
  readonly config: JsonObject
  readonly writer: Writer
  readonly who: Attacker
  readonly vendor: string
  readonly attacker: string
}

/** The owner makes the definition; the attacker does what its token allows, and calls. */
async function attack(target: DiversionTarget, owner: Tenant, { config, writer, who, vendor, attacker }: Attack) {
  const byOwner = sender(target.url, owner.teamToken, owner.environmentId)
  const name = freshName('diverted')
  const made = await byOwner('POST', '/integration', { name, config, sharing: 'allow' })
  // A definition that is rejected diverts nothing.
  if (made.status !== 200) return
  const tenant: Tenant =
    who === 'other team'
      ? await createApiTenant(target)
      : { ...owner, ...(await createApiEnvironment(target, owner.teamToken)) }
  const send = sender(target.url, tenant.environmentToken)
  const victim = who === 'other team' ? send : sender(target.url, tenant.teamToken, tenant.environmentId)
  const given = writer.installation?.(attacker) ?? {}
  const variables = { environment_variables: { API_URL: vendor, ...(given.environment_variables as JsonObject) } }
  const atInstallation = await (writer.installation === undefined ? victim : send)('POST', '/environment-integration', {
    integration_id: made.body.id,
    override: { ...given, ...variables },
  })
  if (atInstallation.status !== 200) return
  const installation = atInstallation.body.id
  const more = writer.account?.(attacker) ?? {}
  // Where the attacker makes the account, the customer's secret is its own.
  const secret =
    writer.account !== undefined || writer.installation !== undefined ? 'own-key-of-attacker' : CUSTOMER_SECRET
  const credentials = { api_key: secret, host: vendor, ...(more.credentials as JsonObject | undefined) }
  const created = await (writer.account === undefined ? victim : send)('POST', '/integrated-account', {
    environment_integration_id: installation,
    tenant_id: 'acme',
    credentials: more.context === undefined ? credentials : { api_key: secret },
    ...(more.context === undefined ? {} : { context: more.context }),
  })
  if (created.status !== 200) return
  const account = created.body.id
  await settled(send, account)
  await send('GET', `/proxy/items?integrated_account_id=${account}`)
  for (const also of [{}, { reauthorize_accounts: true }]) {
    const sendAlso: Send = (verb, path, body) => send(verb, path, { ...body, ...also })
    await writer.afterwards?.(sendAlso, { installation, account }, attacker)
  }
  await settled(send, account)
  const args = encodeURIComponent(JSON.stringify({ host: attacker }))
  await send('GET', `/proxy/items?integrated_account_id=${account}&host=${encodeURIComponent(attacker)}&args=${args}`)
  await send('POST', `/proxy/_/probe?integrated_account_id=${account}&args=${args}`, {})
  await send('POST', `/integrated-account/${account}/refresh-credentials`, {})
  await send('GET', `/custom/items?integrated_account_id=${account}`)
}

/** Waits until the account is no longer being connected. */
async function settled(send: Send, account: string): Promise<void> {
  for (let poll = 0; poll < 200; poll++) {
    if ((await send('GET', `/integrated-account/${account}`)).body.status !== 'connecting') return
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

function sender(url: string, token: string, environmentId?: string): Send {
  const headers = environmentId === undefined ? {} : { 'patchbay-environment': environmentId }
  return (verb, path, body) => callRest(verb, url + path, token, body, headers).catch(() => NO_ANSWER)
}

const NO_ANSWER = { status: 0, headers: new Headers(), body: { id: '', secret: '' } }
