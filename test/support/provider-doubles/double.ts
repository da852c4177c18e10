import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Json, JsonObject } from '../../../src/foundation/json/index.ts'
import { attempt, deliver, isAccepted } from './delivery.ts'
import { ReceiverHealth } from './health.ts'
import type { DoubleDelivery, DoubleSubscription, ProviderProfile } from './profile.ts'
import { APPLICATION_SECRET } from './profiles.ts'

/** How a provider ended a subscription on its own, and why. */
export interface Disabled {
  readonly provider: string
  readonly subscription: string
  readonly why: string
}

interface KeptSubscription extends DoubleSubscription {
  /** As its owner wants it. */
  isDeleted: boolean
  /** As the provider has decided; empty: it works. */
  disabled: string
  droppingUntil: number
  readonly health: ReceiverHealth
}

/** What happened to one delivery. */
interface Emitted {
  readonly delivery: DoubleDelivery
  /** The provider has given it up, or never sent it. */
  isLost: boolean
}

const HANDSHAKE_DEADLINE_MS = 3_000
/** Notifications are dropped for so long. */
const DROPPING_MS = 10_000
/** Attempts of a repeated validation before the provider disables the address. */
const VALIDATIONS_MAX = 4
const VALIDATION_GAP_MS = 5_000

/** A provider on a loopback port: an API for subscriptions, and deliveries as its profile says. */
export class ProviderDouble implements AsyncDisposable {
  readonly profile: ProviderProfile
  readonly emitted: Emitted[] = []
  readonly disabled: Disabled[] = []
  readonly counts = { attempts: 0, accepted: 0, handshakes: 0, renewals: 0, created: 0, deleted: 0 }
  readonly #subscriptions = new Map<string, KeptSubscription>()
  readonly #server: Server
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #working = new Set<Promise<unknown>>()

  private constructor(profile: ProviderProfile) {
    this.profile = profile
    this.#server = createServer((request, response) => {
      void this.#serve(request).then(({ status, json }) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
      })
    })
  }

  static async start(profile: ProviderProfile): Promise<ProviderDouble> {
    const double = new ProviderDouble(profile)
    await new Promise<void>((resolve) => double.#server.listen(0, '127.0.0.1', resolve))
    return double
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The definition of this provider. */
  definition(): JsonObject {
    const fields = [{ name: 'api_key', type: 'password', required: true }]
    return {
      label: this.profile.name,
      base_url: this.url,
      credentials: { format: 'api_key', config: { fields } },
      retry: { max_attempts: 1 },
      webhook: this.profile.webhook,
    }
  }

  /** Subscriptions that deliver now. */
  get active(): readonly DoubleSubscription[] {
    return [...this.#subscriptions.values()].filter((each) => this.#isActive(each))
  }

  /** Enters an address by hand. @throws Error when its handshake fails */
  async register(address: string): Promise<DoubleSubscription> {
    const subscription = this.#make(address, APPLICATION_SECRET)
    if (!(await this.#isProven(subscription))) throw new Error(`${this.profile.name}: ${address} failed its handshake`)
    return this.#keep(subscription)
  }

  /** Delivers in the background; every item must have its effect once. */
  emit(subscription: DoubleSubscription, items: DoubleDelivery['items']): void {
    const emitted = { delivery: { deliveryId: randomUUID(), items }, isLost: false }
    this.emitted.push(emitted)
    this.#track(this.#send(subscription.id, emitted.delivery).then((isDelivered) => (emitted.isLost = !isDelivered)))
  }

  /** Resolves when every delivery was accepted or given up. */
  async settled(): Promise<void> {
    while (this.#working.size > 0) await Promise.allSettled(this.#working)
  }

  /** Ends repeated validations and heartbeats. */
  stop(): void {
    for (const timer of this.#timers) clearInterval(timer)
    this.#timers.clear()
  }

  async #send(id: string, delivery: DoubleDelivery): Promise<boolean> {
    const { profile } = this
    const kept = this.#subscriptions.get(id)
    if (kept === undefined || !this.#isActive(kept) || Date.now() < kept.droppingUntil) return false
    let failures = 0
    const isAnswered = await deliver(
      (retry) => profile.request(kept, delivery, retry),
      profile.policy,
      (outcome) => {
        this.counts.attempts += 1
        if (isAccepted(outcome)) this.counts.accepted += 1
        failures += isAccepted(outcome) ? 0 : 1
        const verdict = kept.health.note(outcome, failures)
        if (verdict === 'disabled') this.#disable(kept, `failed attempts, the last one with ${outcome.status}`)
        if (verdict === 'dropping' && profile.health.kind === 'slow') {
          kept.droppingUntil = Date.now() + DROPPING_MS
          this.disabled.push({
            provider: profile.name,
            subscription: id,
            why: 'slow answers: notifications are dropped',
          })
        }
      },
      () => kept.isDeleted || kept.disabled !== '',
    )
    // What its owner has deleted meanwhile is not owed any more.
    return isAnswered || kept.isDeleted
  }

  async #serve(request: IncomingMessage): Promise<{ readonly status: number; readonly json: Json }> {
    const [, collection, id, verb] = (request.url ?? '').split('/')
    if (collection !== 'hooks') return { status: 404, json: {} }
    if (request.method === 'POST' && id === undefined) return await this.#create(await text(request))
    const kept = this.#subscriptions.get(id ?? '')
    if (kept === undefined || !this.#isActive(kept)) return { status: 404, json: {} }
    if (request.method === 'DELETE') {
      kept.isDeleted = true
      this.counts.deleted += 1
      return { status: 200, json: {} }
    }
    if (verb !== 'renew') return { status: 405, json: {} }
    kept.expiresAt = this.#expiry()
    this.counts.renewals += 1
    return { status: 200, json: shown(kept) }
  }

  async #create(body: string): Promise<{ readonly status: number; readonly json: Json }> {
    const { address, secret } = JSON.parse(body) as { address: string; secret?: string }
    const own = this.profile.name === 'asana' ? randomUUID() : APPLICATION_SECRET
    const subscription = this.#make(address, secret ?? own)
    // The response waits for the handshake.
    if (!(await this.#isProven(subscription))) return { status: 400, json: { message: 'the handshake failed' } }
    this.counts.created += 1
    return { status: 201, json: shown(this.#keep(subscription)) }
  }

  #make(address: string, secret: string): KeptSubscription {
    const health = new ReceiverHealth(this.profile.health)
    const expiresAt = this.#expiry()
    return { id: randomUUID(), address, secret, expiresAt, isDeleted: false, disabled: '', droppingUntil: 0, health }
  }

  #keep(subscription: KeptSubscription): KeptSubscription {
    const { revalidateMs, heartbeatMs } = this.profile
    this.#subscriptions.set(subscription.id, subscription)
    if (revalidateMs !== undefined) this.#every(revalidateMs, () => this.#revalidate(subscription))
    if (heartbeatMs !== undefined)
      this.#every(heartbeatMs, () => this.#send(subscription.id, { deliveryId: randomUUID(), items: [] }))
    return subscription
  }

  async #revalidate(subscription: KeptSubscription): Promise<void> {
    for (let tried = 0; tried < VALIDATIONS_MAX; tried++) {
      if (await this.#isProven(subscription)) return
      await new Promise((resolve) => setTimeout(resolve, VALIDATION_GAP_MS))
    }
    this.#disable(subscription, 'a repeated validation failed')
  }

  async #isProven(subscription: KeptSubscription): Promise<boolean> {
    const { handshake } = this.profile
    if (handshake === undefined) return true
    const token = `token ${randomUUID()}`
    const { status, headers, body } = await attempt(handshake.request(subscription, token), HANDSHAKE_DEADLINE_MS)
    this.counts.handshakes += 1
    return handshake.isProven({ status, body, header: (name) => headers?.get(name) ?? '' }, token, subscription.secret)
  }

  #disable(subscription: KeptSubscription, why: string): void {
    if (subscription.disabled !== '') return
    subscription.disabled = why
    this.disabled.push({ provider: this.profile.name, subscription: subscription.id, why })
  }

  #isActive({ isDeleted, disabled, expiresAt }: KeptSubscription): boolean {
    return !isDeleted && disabled === '' && (expiresAt === undefined || Date.now() < expiresAt)
  }

  #expiry(): number | undefined {
    return this.profile.lifeMs === undefined ? undefined : Date.now() + this.profile.lifeMs
  }

  #every(intervalMs: number, work: () => Promise<unknown>): void {
    this.#timers.add(setInterval(() => this.#track(work()), intervalMs))
  }

  #track(work: Promise<unknown>): void {
    this.#working.add(work)
    void work.finally(() => this.#working.delete(work))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

function shown({ id, expiresAt }: DoubleSubscription): JsonObject {
  return { id, ...(expiresAt === undefined ? {} : { expires: new Date(expiresAt).toISOString() }) }
}
