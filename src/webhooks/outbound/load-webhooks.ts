import type { Clock } from '../../foundation/base/index.ts'
import type { Db, Pool } from '../../foundation/database/index.ts'
import type { SecretStore } from '../../foundation/secrets/index.ts'
import { type EventPredicate, parseFilter } from './filter.ts'
import { headersFromSecrets } from './headers.ts'
import type { WebhookTarget } from './request.ts'
import { SECRETS_AGE_MAX_MS, signingSecretRef, validSecrets } from './signing.ts'
import { type LoadedWebhookRow, selectSubscribers, selectWebhooks, type WebhookRef } from './sql/load-webhooks.ts'
import { type WebhookState, webhookState } from './state.ts'

/** Which events a webhook asks for. */
export interface WebhookSubscriber extends WebhookRef {
  /** Names and `*` patterns of the event catalog, as `isAskedFor` reads them. */
  readonly eventTypes: readonly string[]
  /** Null: every event of the types. */
  readonly passesFilter: EventPredicate | null
}

/** At most so many requests per window. */
export interface WebhookRateLimit {
  readonly requests: number
  readonly windowSeconds: number
}

/** A webhook with all that sending to it takes. */
export interface LoadedWebhook extends WebhookTarget {
  readonly state: WebhookState
  /** When it was asked for, on the monotonic clock. */
  readonly loadedMs: number
  /** Null: as fast as the receiver answers. */
  readonly rateLimit: WebhookRateLimit | null
}

/** What loading webhooks takes. */
export interface LoadWebhookDeps {
  readonly secrets: Pick<SecretStore, 'decryptAll'>
  readonly clock: Clock
}

/** The webhooks of the environments that may be sent deliveries (state `active` or `failing`), in one statement. */
export async function listSubscribers(
  tx: Db,
  environmentIds: readonly string[],
): Promise<readonly WebhookSubscriber[]> {
  const rows = await selectSubscribers(tx, environmentIds)
  return rows.map(({ filter, ...row }) => ({
    ...row,
    // Was checked when it was written.
    passesFilter: Object.keys(filter).length === 0 ? null : parseFilter(filter, 'filter').passes,
  }))
}

/**
 * The webhooks by id, in whatever state, in one statement; one that does not exist is absent.
 *
 * @throws Failure SECRET_UNREADABLE
 */
export async function loadWebhooks(
  deps: LoadWebhookDeps,
  tx: Db,
  refs: readonly WebhookRef[],
): Promise<ReadonlyMap<string, LoadedWebhook>> {
  const webhooks = new Map<string, LoadedWebhook>()
  const loadedMs = deps.clock.monotonicMs()
  for (const row of await selectWebhooks(tx, refs))
    webhooks.set(row.webhookId, await webhookFromRow(deps, tx, row, loadedMs))
  return webhooks
}

/**
 * A webhook with the secrets that sign now: as it was loaded, or, when they may have been rotated since, as it is stored. As it
 * was loaded, too, when it was deleted meanwhile.
 *
 * @throws Failure SECRET_UNREADABLE
 */
export async function withCurrentSecrets(
  deps: LoadWebhookDeps,
  pool: Pool,
  webhook: LoadedWebhook,
): Promise<LoadedWebhook> {
  if (deps.clock.monotonicMs() - webhook.loadedMs <= SECRETS_AGE_MAX_MS) return webhook
  const { environmentId, webhookId } = webhook
  return (await loadWebhooks(deps, pool, [{ environmentId, webhookId }])).get(webhookId) ?? webhook
}

async function webhookFromRow(
  deps: LoadWebhookDeps,
  tx: Db,
  row: LoadedWebhookRow,
  loadedMs: number,
): Promise<LoadedWebhook> {
  const { environmentId, webhookId, url, envelope, compatibility, maxEventBytes, rateLimitRequests, rateLimitSeconds } =
    row
  const values = await deps.secrets.decryptAll(tx, signingSecretRef(environmentId, webhookId), row.secrets)
  const hasLimit = rateLimitRequests !== null && rateLimitSeconds !== null
  return {
    environmentId,
    webhookId,
    url,
    envelope,
    compatibility,
    maxEventBytes,
    secrets: validSecrets(values, deps.clock.now()),
    headers: headersFromSecrets(values),
    state: webhookState(row),
    loadedMs,
    rateLimit: hasLimit ? { requests: rateLimitRequests, windowSeconds: rateLimitSeconds } : null,
  }
}
