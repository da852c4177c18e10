import { systemClock } from '../../../../src/foundation/base/index.ts'
import type { Database } from '../../../../src/foundation/database/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import { appendEvents, type EventType } from '../../../../src/platform/outbox/index.ts'
import { createWebhook } from '../../../../src/webhooks/outbound/index.ts'
import { type DurableDatabase, startDurableDatabase } from '../../../support/durable-database.ts'
import { seedEnvironment } from '../../../support/seed-rows.ts'
import type { DeliveriesReceived } from './delivery-receiver-main.ts'
import { Peer } from './peer.ts'

const EVENT_TYPE: EventType = 'record:created'
/** About 1 KB as it is sent. */
const PAYLOAD = { text: 'x'.repeat(750) }
const EVENTS_PER_STATEMENT = 1_000
const BACKLOG_PER_STATEMENT = 20_000
const POLL_MS = 20

/** An environment with webhooks, a receiver and delivery workers, each a process of its own. */
export class DeliveryFleet implements AsyncDisposable {
  readonly #durable: DurableDatabase
  readonly #keys = generateKeyRingText('bench')
  readonly environmentId: string
  readonly receiver: Peer<string & DeliveriesReceived>
  readonly receiverUrl: string
  readonly #workers: Peer<unknown>[] = []

  private constructor(
    durable: DurableDatabase,
    environmentId: string,
    receiver: Peer<string & DeliveriesReceived>,
    receiverUrl: string,
  ) {
    this.#durable = durable
    this.environmentId = environmentId
    this.receiver = receiver
    this.receiverUrl = receiverUrl
  }

  static async start(): Promise<DeliveryFleet> {
    const durable = await startDurableDatabase()
    const receiver = new Peer<string & DeliveriesReceived>('delivery-receiver-main.ts')
    const receiverUrl = await receiver.next()
    return new DeliveryFleet(durable, await seedEnvironment(durable.database), receiver, receiverUrl)
  }

  get database(): Database {
    return this.#durable.database
  }

  /** Creates a webhook that is sent to this path of the receiver; returns its id. */
  async addWebhook(path: string): Promise<string> {
    const secrets = createSecretStore(parseKeyRing(this.#keys))
    const deps = { secrets, clock: systemClock, findUrlViolation: () => undefined }
    const targetUrl = `${this.receiverUrl}/${path}`
    const { webhook } = await this.database.transaction((tx) =>
      createWebhook(deps, tx, this.environmentId, { targetUrl }),
    )
    return webhook.id
  }

  async addWorker(concurrency: number): Promise<void> {
    const worker = new Peer('delivery-worker-main.ts', [this.#durable.url, this.#keys, String(concurrency)])
    await worker.next()
    worker.go()
    this.#workers.push(worker)
  }

  async killWorkers(): Promise<void> {
    for (const worker of this.#workers.splice(0)) await worker[Symbol.asyncDispose]()
  }

  /** Records events of 1 KB. */
  async addEvents(count: number): Promise<void> {
    for (let left = count; left > 0; left -= EVENTS_PER_STATEMENT) {
      const batch = Array.from({ length: Math.min(left, EVENTS_PER_STATEMENT) }, () => ({
        environmentId: this.environmentId,
        type: EVENT_TYPE,
        payload: PAYLOAD,
      }))
      await this.database.transaction((tx) => appendEvents(tx, batch))
    }
  }

  /** Puts so many deliveries that are due into the backlog, of one event, evenly to the webhooks. */
  async addBacklog(webhookIds: readonly string[], count: number): Promise<void> {
    for (let left = count; left > 0; left -= BACKLOG_PER_STATEMENT)
      await execute(
        this.database.pool,
        `with e as (select id, type from event where environment_id = :environmentId limit 1),
         d as (
           insert into delivery (environment_id, id, event_id, event_type, webhook_id, trigger, attempts)
           select :environmentId, uuidv7(), e.id, e.type, (:webhookIds::uuid[])[1 + n % cardinality(:webhookIds::uuid[])], 'automatic', 1
           from e, generate_series(1, :count::int) n returning id, environment_id, webhook_id, event_id
         )
         insert into delivery_queue (delivery_id, environment_id, webhook_id, event_id, trigger, queue_group, available_at, attempt)
         select id, environment_id, webhook_id, event_id, 'automatic', 'retry', now(), 1 from d`,
        { environmentId: this.environmentId, webhookIds, count: Math.min(left, BACKLOG_PER_STATEMENT) },
      )
    for (const table of ['delivery', 'delivery_queue']) await this.database.pool.raw(`analyze ${table}`)
  }

  /** What was received since the last call. */
  async received(): Promise<DeliveriesReceived> {
    const answer = this.receiver.next()
    this.receiver.go()
    return await answer
  }

  /** Delivered first attempts, and deliveries of the backlog. */
  async countDelivered(): Promise<{ readonly fresh: number; readonly backlog: number }> {
    const [found] = await query<{ readonly fresh: number; readonly backlog: number }>(
      this.database.pool,
      `select count(*) filter (where attempts = 1) as fresh, count(*) filter (where attempts > 1) as backlog
       from delivery where state = 'delivered'`,
    )
    return found ?? { fresh: 0, backlog: 0 }
  }

  /** Waits until nothing waits or is being sent, but for at most so many. */
  async untilDelivered(exceptMax = 0): Promise<void> {
    for (;;) {
      const [found] = await query<{ waiting: number }>(
        this.database.pool,
        `select (select count(*) from event_dispatch) + (select count(*) from delivery_queue) + (select count(*) from delivery_lease) as waiting`,
      )
      if ((found?.waiting ?? 0) <= exceptMax) return
      await systemClock.sleep(POLL_MS)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.killWorkers()
    await this.receiver[Symbol.asyncDispose]()
    await this.#durable[Symbol.asyncDispose]()
  }
}
