import { type Db, query, rowSet } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import {
  type EncryptedSecret,
  type SecretsColumn,
  secretsFromColumn,
  secretsSql,
} from '../../../foundation/secrets/index.ts'
import type { WebhookEnvelope } from '../envelope.ts'
import type { WebhookCompatibility } from '../signing.ts'
import type { StoredWebhookState } from '../state.ts'

/** A webhook by its key. */
export interface WebhookRef {
  readonly environmentId: string
  readonly webhookId: string
}

/** Which events an active webhook asks for, as stored. */
export interface SubscriberRow extends WebhookRef {
  readonly eventTypes: readonly string[]
  readonly filter: JsonObject
}

/** A webhook with its encrypted secrets, as stored. */
export interface LoadedWebhookRow extends WebhookRef, StoredWebhookState {
  readonly url: string
  readonly envelope: WebhookEnvelope
  readonly compatibility: WebhookCompatibility
  readonly rateLimitRequests: number | null
  readonly rateLimitSeconds: number | null
  readonly maxEventBytes: number
  readonly secrets: readonly EncryptedSecret[]
}

const REFS = rowSet('environment_id uuid, webhook_id uuid')

/** The existing ones of the webhooks, in any order and of any environments, in one statement. Uses primary keys. */
export async function selectWebhooks(tx: Db, wanted: readonly WebhookRef[]): Promise<readonly LoadedWebhookRow[]> {
  const rows = await query<Omit<LoadedWebhookRow, 'secrets'> & { readonly secrets: SecretsColumn }>(
    tx,
    `select webhook.environment_id, webhook.id as webhook_id, target_url as url, envelope, compatibility,
       rate_limit_requests, rate_limit_seconds, max_event_bytes, is_active,
       disabled_reason, coalesce(failure.attempts, 0) as failed_attempts,
       ${secretsSql('webhook', 'webhook')} as secrets
     from ${REFS.unnest} as wanted (environment_id, id)
     join webhook on webhook.environment_id = wanted.environment_id and webhook.id = wanted.id
     left join webhook_failure failure on failure.environment_id = webhook.environment_id and failure.webhook_id = webhook.id`,
    REFS.of(wanted),
  )
  return rows.map(({ secrets, ...row }) => ({ ...row, secrets: secretsFromColumn(secrets) }))
}

/** The active webhooks of the environments. Uses the primary key. */
export async function selectSubscribers(tx: Db, environmentIds: readonly string[]): Promise<readonly SubscriberRow[]> {
  return await query(
    tx,
    `select environment_id, id as webhook_id, event_types, filter
     from webhook where environment_id = any(:environmentIds::uuid[]) and is_active order by environment_id, id`,
    { environmentIds: [...environmentIds] },
  )
}
