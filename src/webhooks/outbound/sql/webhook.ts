import {
  type Db,
  execute,
  jsonb,
  newestFirst,
  nextVersion,
  queryOne,
  type Tx,
  whereVersion,
} from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import type { WebhookEnvelope } from '../envelope.ts'
import type { WebhookCompatibility } from '../signing.ts'
import type { StoredWebhookState } from '../state.ts'

/** A webhook as stored; its signing secrets and the values of its headers are rows of "secret". */
export interface WebhookRecord extends StoredWebhookState {
  readonly id: string
  readonly environmentId: string
  readonly targetUrl: string
  readonly description: string
  /** Empty: all events. */
  readonly eventTypes: readonly string[]
  /** As `parseFilter` reads it; empty: every event of the types. */
  readonly filter: JsonObject
  /** Custom headers, in lower case. */
  readonly headerNames: readonly string[]
  readonly envelope: WebhookEnvelope
  readonly compatibility: WebhookCompatibility
  /** Requests per window; null without a limit. */
  readonly rateLimitRequests: number | null
  /** Length of the window; null without a limit. */
  readonly rateLimitSeconds: number | null
  readonly maxEventBytes: number
  /** When the first attempt failed since the last success; null without any. */
  readonly failingSince: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** A webhook to be stored. */
export type NewWebhook = Omit<
  WebhookRecord,
  'createdAt' | 'updatedAt' | 'version' | 'disabledReason' | 'failedAttempts' | 'failingSince'
>

/** Columns that change; an absent one keeps its value. */
export type WebhookColumns = {
  readonly [Field in keyof Omit<NewWebhook, 'id' | 'environmentId'>]?: NewWebhook[Field] | undefined
}

const OF_WEBHOOK =
  'from webhook_failure failure where failure.environment_id = webhook.environment_id and failure.webhook_id = webhook.id'

/** What a statement about "webhook" selects or returns. */
const COLUMNS = `webhook.id, webhook.environment_id, target_url, description,
  event_types, filter, header_names, envelope, compatibility, rate_limit_requests, rate_limit_seconds, max_event_bytes, is_active,
  disabled_reason, coalesce((select attempts ${OF_WEBHOOK}), 0) as failed_attempts,
  (select failing_since ${OF_WEBHOOK} and attempts > 0) as failing_since,
  created_at, updated_at, version`

export async function insertWebhook(tx: Db, webhook: NewWebhook): Promise<WebhookRecord> {
  const { id, environmentId, ...columns } = webhook
  const [inserted] = await tx('webhook')
    .insert({ environment_id: environmentId, id, ...toColumns(columns) })
    .returning(tx.raw(COLUMNS))
  return inserted
}

/** Whether the environment has as many webhooks, or more. Uses the primary key. */
export async function hasWebhooks(tx: Db, environmentId: string, count: number): Promise<boolean> {
  const sql = 'select from webhook where environment_id = :environmentId offset :offset limit 1'
  return (await queryOne(tx, sql, { environmentId, offset: count - 1 })) !== undefined
}

/** Uses the primary keys. */
export async function findWebhook(tx: Db, environmentId: string, id: string): Promise<WebhookRecord | undefined> {
  const sql = `select ${COLUMNS} from webhook where environment_id = :environmentId and id = :id`
  return await queryOne(tx, sql, { environmentId, id })
}

/** Reads a webhook and locks its row until the transaction ends. Uses the primary keys. */
export async function lockWebhook(tx: Tx, environmentId: string, id: string): Promise<WebhookRecord | undefined> {
  const sql = `select ${COLUMNS} from webhook where environment_id = :environmentId and id = :id for update of webhook`
  return await queryOne(tx, sql, { environmentId, id })
}

/** At most `limit` webhooks of the environment below the id `before`, newest first. Uses the primary keys. */
export async function listWebhooks(
  tx: Db,
  environmentId: string,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly WebhookRecord[]> {
  const webhooks = tx('webhook').where({ environment_id: environmentId }).modify(newestFirst, page)
  return await webhooks.select(tx.raw(COLUMNS))
}

/** Changes the given fields of a webhook that the caller has locked. Uses the primary key. */
export async function updateWebhookRow(
  tx: Db,
  environmentId: string,
  id: string,
  change: WebhookColumns,
): Promise<WebhookRecord> {
  const isChosen = change.isActive !== undefined
  const [updated] = await tx('webhook')
    .where({ environment_id: environmentId, id })
    .update({ ...toColumns(change), ...(isChosen && { disabled_reason: null }), ...nextVersion(tx) })
    .returning(tx.raw(COLUMNS))
  return updated
}

/** Undefined columns are left out by the query builder. */
function toColumns(change: WebhookColumns) {
  return {
    target_url: change.targetUrl,
    description: change.description,
    event_types: change.eventTypes,
    filter: change.filter === undefined ? undefined : jsonb(change.filter),
    header_names: change.headerNames,
    envelope: change.envelope,
    compatibility: change.compatibility,
    rate_limit_requests: change.rateLimitRequests,
    rate_limit_seconds: change.rateLimitSeconds,
    max_event_bytes: change.maxEventBytes,
    is_active: change.isActive,
  }
}

/**
 * Deletes a webhook; returns whether it existed in this version. Uses the primary key.
 *
 * @throws the violation of a foreign key while triggers send to it
 */
export async function deleteWebhookRow(
  tx: Db,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  return (await tx('webhook').where({ environment_id: environmentId, id }).modify(whereVersion, version).delete()) > 0
}

/** Turns off all webhooks of environments that are deleted. Uses the primary key. */
export async function disableWebhooksOfEnvironments(tx: Db, environmentIds: readonly string[]): Promise<void> {
  const sql = 'update webhook set is_active = false where environment_id = any(:environmentIds) and is_active'
  await execute(tx, sql, { environmentIds })
}
