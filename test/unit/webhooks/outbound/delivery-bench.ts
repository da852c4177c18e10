import { newId, systemClock } from '../../../../src/foundation/base/index.ts'
import type { Database } from '../../../../src/foundation/database/index.ts'
import { query } from '../../../../src/foundation/database/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { appendEvents, examplePayload, type NewEvent } from '../../../../src/platform/outbox/index.ts'
import type { DeliveryWorkerDeps } from '../../../../src/webhooks/outbound/delivery-worker.ts'
import type { WebhookInput } from '../../../../src/webhooks/outbound/index.ts'
import { createWebhook, DeliveryWorker } from '../../../../src/webhooks/outbound/index.ts'

const secrets = createSecretStore(parseKeyRing(generateKeyRingText('k')))
const EVENT_TYPE = 'link_token:completed'

/** A delivery as stored. */
export interface StoredDelivery {
  readonly id: string
  readonly eventId: string
  readonly webhookId: string
  readonly state: string
  readonly attempts: number
  readonly lastStatus: number | null
  readonly lastErrorClass: string | null
  readonly nextAttemptAt: Date | null
  readonly finishedAt: Date | null
}

/** A delivery worker on a test database, and what tests do with it. */
export class DeliveryBench implements AsyncDisposable {
  readonly #http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
  readonly #secrets = secrets
  readonly #environmentId: string
  readonly database: Database
  readonly worker: DeliveryWorker

  constructor(
    database: Database,
    environmentId: string,
    concurrency = 64,
    replaced: Partial<Pick<DeliveryWorkerDeps, 'clock' | 'queue'>> = {},
  ) {
    this.database = database
    this.#environmentId = environmentId
    this.worker = new DeliveryWorker({
      database,
      secrets: this.#secrets,
      http: this.#http,
      clock: systemClock,
      random: () => 0,
      logger: silentLogger,
      holder: newId(),
      concurrency,
      onError: (error) => {
        throw error
      },
      ...replaced,
    })
  }

  /** A webhook of the environment with its secret. */
  async webhook(targetUrl: string, input: Partial<WebhookInput> = {}): Promise<{ id: string; secret: string }> {
    const deps = { secrets: this.#secrets, clock: systemClock, findUrlViolation: () => undefined }
    const { webhook, secret } = await this.database.transaction((tx) =>
      createWebhook(deps, tx, this.#environmentId, { targetUrl, ...input }),
    )
    return { id: webhook.id, secret }
  }

  /** Records an event; returns its id. */
  async event(event: Partial<NewEvent> = {}): Promise<string> {
    const id = newId()
    const { database } = this
    await database.transaction((tx) =>
      appendEvents(tx, [
        { environmentId: this.#environmentId, id, type: EVENT_TYPE, payload: examplePayload(EVENT_TYPE), ...event },
      ]),
    )
    return id
  }

  /** Dispatches everything, makes an attempt of every delivery that is due, and waits until they are settled. */
  async run(): Promise<void> {
    while ((await this.worker.dispatchOnce()) === true);
    await this.send()
  }

  /** Makes an attempt of every delivery that is due, and waits until they are settled. */
  async send(): Promise<void> {
    for (let made = -1; made !== this.#made; ) {
      made = this.#made
      this.worker.wake()
      await this.worker.sendOnce()
      while (this.worker.stats.inFlight > 0) await new Promise(setImmediate)
    }
  }

  get #made(): number {
    return Object.values(this.worker.stats.outcomes).reduce((sum, count) => sum + count, 0)
  }

  async deliveries(eventId?: string): Promise<readonly StoredDelivery[]> {
    return await query(
      this.database.pool,
      `select * from delivery where environment_id = :environmentId and (:eventId::uuid is null or event_id = :eventId) order by id`,
      { environmentId: this.#environmentId, eventId: eventId ?? null },
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.worker[Symbol.asyncDispose]()
    await this.#http[Symbol.asyncDispose]()
  }
}
