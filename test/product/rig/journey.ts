import { isJsonObject, type Json, type JsonObject } from '../../../src/foundation/json/index.ts'
import { callRest } from '../../support/rest.ts'
import type { GoldenCall, GoldenRequest } from '../../unit/engine/catalog/golden-file.ts'
import { shipped } from '../../unit/engine/catalog/shipped.ts'
import { connect, type Visit } from './connect.ts'
import { Provider } from './provider.ts'
import type { RigApp } from './rig-app.ts'
import { type RigTable, rigTable } from './rig-table.ts'
import { deliver, hasEvents, lookupValueOf, withGoldenSecret } from './webhook.ts'

/** What a definition goes through, in this order. */
export const STEPS = [
  'install',
  'connect',
  'context',
  'calls',
  'webhook',
  'refresh',
  'reconnect',
  'second account',
] as const
export type Step = (typeof STEPS)[number]

/** What became of a step: nothing to say, why it does not apply, or what is wrong. */
export type StepOutcome =
  | { readonly kind: 'passed' }
  | { readonly kind: 'not_applicable'; readonly why: string }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'blocked' }

/** Goes through all steps with a shipped definition as it ships. @param key its name, or that and the key of a credential */
export async function journey(app: RigApp, key: string): Promise<ReadonlyMap<Step, StepOutcome>> {
  const outcomes = new Map<Step, StepOutcome>()
  const run = new Journey(app, rigTable(key))
  app.standIn.play((request) => run.provider.answer(request))
  let isBlocked = false
  for (const step of STEPS) {
    const outcome: StepOutcome = isBlocked ? { kind: 'blocked' } : await attempt(() => run.take(step))
    outcomes.set(step, outcome)
    isBlocked ||= outcome.kind === 'failed' && (step === 'install' || step === 'connect')
  }
  app.setTime()
  return outcomes
}

async function attempt(take: () => Promise<string | undefined>): Promise<StepOutcome> {
  try {
    const why = await take()
    return why === undefined ? { kind: 'passed' } : { kind: 'not_applicable', why }
  } catch (error) {
    return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) }
  }
}

/** Events of records and hints; a hint of what no sync reads is ignored. */
const ROUTED: readonly Json[] = ['routed', 'hint', 'ignored']
const POLL_MS = 20
const POLLS_MAX = 500

class Journey {
  readonly #app: RigApp
  readonly #table: RigTable
  readonly #visit: Visit
  readonly provider: Provider
  #installationId = ''
  #accountId = ''
  #context: JsonObject = {}

  constructor(app: RigApp, table: RigTable) {
    this.#app = app
    this.#table = table
    this.provider = new Provider(table.script)
    this.#visit = table.visit
  }

  /** @returns why the step does not apply; `undefined`: it was taken. @throws with what is wrong */
  take(step: Step): Promise<string | undefined> {
    switch (step) {
      case 'install':
        return this.#install()
      case 'connect':
        return this.#connect()
      case 'context':
        return this.#checkContext()
      case 'calls':
        return this.#calls()
      case 'webhook':
        return this.#webhook()
      case 'refresh':
        return this.#refresh()
      case 'reconnect':
        return this.#reconnect()
      case 'second account':
        return this.#secondAccount()
    }
  }

  async #install(): Promise<undefined> {
    const { name, script } = this.#table
    const known = this.#app.installations.get(name)
    if (known !== undefined) {
      this.#installationId = known
      return
    }
    const integration = await this.#app.asTeam('POST', '/integration', shipped(name))
    const { id } = await this.#app.asEnvironment('POST', '/environment-integration', {
      integration_id: integration.id,
      show_in_catalog: true,
      override: { environment_variables: script.variables },
    })
    this.#installationId = id
    this.#app.installations.set(name, id)
  }

  async #connect(): Promise<undefined> {
    const { name, linkContext } = this.#table
    const link = { tenant_id: 'acme', integrations: [name], context: linkContext }
    this.#accountId = await this.#through(() => connect(this.#app, this.provider, link, this.#visit))
  }

  /** What the provider complains of explains more than what the product makes of its answer. */
  async #through<Result>(work: () => Promise<Result>): Promise<Result> {
    this.provider.complaints.length = 0
    try {
      return await work()
    } catch (error) {
      const { complaints } = this.provider
      throw complaints.length === 0 ? error : new Error([...new Set(complaints)].join(', '), { cause: error })
    }
  }

  async #checkContext(): Promise<undefined> {
    const { status, context } = await this.#account()
    if (status !== 'active') throw new Error(`the account is ${status}`)
    this.#context = context
    const masked = maskedKeys(context)
    if (masked.length > 0) throw new Error(`masked in the context: ${masked.join(', ')}`)
  }

  async #account(id = this.#accountId) {
    return await this.#app.asEnvironment('GET', `/integrated-account/${id}`)
  }

  async #calls(): Promise<string | undefined> {
    const { lists, get, write } = this.#table
    if (lists.length === 0 && get === undefined && write === undefined) return 'no method is called'
    const problems: string[] = []
    const noting = async (call: GoldenCall, work: () => Promise<void>) => {
      try {
        await work()
      } catch (error) {
        problems.push(`${call.call}: ${error instanceof Error ? error.message : error}`)
      }
    }
    for (const call of lists) await noting(call, () => this.#list(call))
    if (get !== undefined) await noting(get, async () => void (await this.#call(get)))
    if (write !== undefined) await noting(write, () => this.#dryRun(write))
    if (problems.length > 0) throw new Error(problems.join('; '))
    return undefined
  }

  async #list(call: GoldenCall): Promise<void> {
    const body = await this.#call(call)
    if (call.next === undefined) return
    const cursor = body.next_cursor
    if (typeof cursor !== 'string') throw new Error('no cursor of the next page')
    await this.#send(call, { page: { next_cursor: cursor } }, call.next, {})
  }

  async #call(call: GoldenCall, accountId = this.#accountId) {
    return await this.#send(call, {}, call.request, call.answer ?? { json: {} }, accountId)
  }

  async #send(
    call: GoldenCall,
    also: JsonObject,
    expected: Partial<GoldenRequest>,
    answer: NonNullable<GoldenCall['answer']>,
    accountId = this.#accountId,
  ) {
    const { requests } = this.provider
    this.provider.script(Object.keys(answer).length === 0 ? { json: {} } : answer)
    const from = requests.length
    const sent = await callRest('POST', `${this.#app.url}/patchbay.v1.ProxyService/Call`, this.#app.environmentToken, {
      integrated_account_id: accountId,
      ...requestOf(call),
      ...also,
    })
    this.provider.script()
    const [request] = requests.slice(from).filter(({ url }) => !this.#table.isTokenUrl(url))
    if (request === undefined) throw new Error(messageOf(sent.body))
    const { url = '' } = expected
    if (comparable(request.url) !== comparable(new URL(this.#adapt(url))))
      throw new Error(`sent ${request.url}, not ${this.#adapt(url)}`)
    if (sent.status !== 200 && call.outcome === 'ok' && also.page === undefined) throw new Error(messageOf(sent.body))
    return sent.body
  }

  async #dryRun(call: GoldenCall): Promise<void> {
    const sent = await callRest('POST', `${this.#app.url}/patchbay.v1.ProxyService/Call`, this.#app.environmentToken, {
      integrated_account_id: this.#accountId,
      ...requestOf(call),
      dry_run: true,
    })
    const url = sent.body.dry_run?.url
    if (typeof url !== 'string') throw new Error(messageOf(sent.body))
    if (url.includes('***') && this.#table.own.secretInUrl !== true) throw new Error(`masked in the address: ${url}`)
  }

  /** A recorded text with the values of this account. */
  #adapt(text: string): string {
    return this.#table.rebase(text, this.#context)
  }

  async #webhook(): Promise<string | undefined> {
    const { name, webhooks, lookupField, own } = this.#table
    if (webhooks === undefined) return 'it receives no webhooks'
    if (own.webhook === 'subscription') return 'only webhooks of a subscription are authentic'
    const recorded = webhooks.deliveries.find(hasEvents)
    if (recorded === undefined) return 'its webhooks become no events'
    const path =
      lookupField === undefined
        ? `/integrated-account-webhook/${this.#accountId}`
        : `/environment-integration-webhook/${this.#installationId}`
    const wanted = lookupValueOf(recorded)
    if (lookupField !== undefined && String(this.#context[lookupField]) !== String(wanted))
      throw new Error(`the context says ${lookupField} ${this.#context[lookupField]}, the delivery ${wanted}`)
    this.#app.setTime(new Date(webhooks.now))
    try {
      const handshake = webhooks.deliveries.find(({ headers }) => 'x-hook-secret' in headers)
      for (const delivery of [handshake, recorded].filter((each) => each !== undefined).map(withGoldenSecret)) {
        const status = await deliver(name, delivery, { ...this.#app, path })
        if (status >= 300) throw new Error(`it is answered ${status}`)
      }
      await this.#routed(path)
    } finally {
      this.#app.setTime()
    }
    return undefined
  }

  /** Waits until the delivery is processed. @throws unless an event of the account comes of it */
  async #routed(path: string): Promise<void> {
    const source = path.split('/')[2]
    let inbound = await this.#inbound(source)
    for (let count = 0; count < POLLS_MAX && inbound?.state === 'received'; count++) {
      this.#app.processWebhooks()
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      inbound = await this.#inbound(source)
    }
    if (inbound === undefined) throw new Error('it was not stored')
    const { state, error, items } = inbound
    const isRouted = (item: JsonObject) =>
      item.integrated_account_id === this.#accountId && ROUTED.includes(item.state ?? null)
    if (items.some(isRouted)) return
    throw new Error(`it is ${state}: ${JSON.stringify(error ?? items)}`)
  }

  async #inbound(source: string | undefined) {
    const list = await this.#app.asEnvironment('GET', `/inbound-event?source_id=${source}`)
    const [latest] = list.inbound_events
    return latest === undefined ? undefined : await this.#app.asEnvironment('GET', `/inbound-event/${latest.id}`)
  }

  async #refresh(): Promise<string | undefined> {
    const { expiresIn, probe, own } = this.#table
    if (expiresIn === undefined) return 'its tokens do not end'
    if (own.callsWithoutToken) return 'calls do not use its token'
    if (probe === undefined) return 'no call to try'
    const before = this.provider.tokenMark
    this.#app.setTime(new Date(Date.now() + (expiresIn + 1) * 1_000))
    try {
      await this.#call(probe)
    } finally {
      this.#app.setTime()
    }
    const { tokenMark, requests } = this.provider
    if (tokenMark === before) throw new Error('the token was not refreshed')
    if (requests.at(-1)?.text.includes(tokenMark) !== true) throw new Error('the call did not send the new token')
    return undefined
  }

  async #reconnect(): Promise<undefined> {
    const path = `/integrated-account/${this.#accountId}`
    const kept = { kept_by_the_customer: 'yes' }
    await this.#app.asEnvironment('PATCH', path, { context: kept })
    const before = await this.#account()
    const id = await this.#through(() =>
      connect(this.#app, this.provider, { integrated_account_id: this.#accountId }, this.#visit),
    )
    if (id !== this.#accountId) throw new Error('it became another account')
    const { status, context } = await this.#account()
    if (status !== 'active') throw new Error(`the account is ${status}`)
    const changed = changedKeys(before.context, context)
    if (changed.length > 0) throw new Error(`changed in the context: ${changed.join(', ')}`)
  }

  async #secondAccount(): Promise<string | undefined> {
    const { probe, name, script } = this.#table
    if (probe === undefined) return 'no call to try'
    const link = { tenant_id: 'globex', integrations: [name] }
    const other = await this.#through(() => connect(this.#app, this.provider, link, this.#visit))
    await this.#app.asEnvironment('DELETE', `/integrated-account/${other}`)
    await this.#app.remove()
    if (this.provider.isRevoked) throw new Error('the grant that the other account uses was revoked')
    await this.#call(probe)
    if (script.oauth?.revoke === undefined) return undefined
    await this.#app.asEnvironment('DELETE', `/integrated-account/${this.#accountId}`)
    await this.#app.remove()
    if (!this.provider.isRevoked) throw new Error('the grant of the last account was not revoked')
    return undefined
  }
}

/** An address whose parameters are in one order. */
function comparable(url: URL): string {
  const sorted = new URL(url)
  sorted.searchParams.sort()
  return sorted.href
}

function requestOf({ call, id, query, body, args, limit }: GoldenCall): JsonObject {
  const [resource = '', method = ''] = call.split('.')
  return {
    resource,
    method,
    ...(id === undefined ? {} : { id: String(id) }),
    ...(query === undefined ? {} : { query }),
    ...(body === undefined ? {} : { body }),
    ...(args === undefined ? {} : { args }),
    ...(limit === undefined ? {} : { page: { limit } }),
  }
}

function messageOf(body: JsonObject): string {
  return String(body.message ?? JSON.stringify(body)).slice(0, 300)
}

/** Dot paths of the values that are or contain a mask. */
function maskedKeys(value: Json, path = ''): readonly string[] {
  if (typeof value === 'string') return value.includes('***') ? [path] : []
  if (Array.isArray(value)) return value.flatMap((item, index) => maskedKeys(item, `${path}[${index}]`))
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([key, item]) => maskedKeys(item, path === '' ? key : `${path}.${key}`))
}

function changedKeys(before: JsonObject, after: JsonObject): readonly string[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return keys.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]))
}
