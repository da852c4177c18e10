import { execute, query, queryOne, type Tx } from '../database/index.ts'

/** A webhook as it is stored; its signing secrets are rows of "secret". */
export interface WebhookRecord {
  readonly id: string
  readonly environmentId: string
  readonly targetUrl: string
  /** Empty: all events. */
  readonly eventTypes: readonly string[]
  readonly isActive: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** A webhook to be stored. */
export type NewWebhook = Pick<WebhookRecord, 'id' | 'environmentId' | 'targetUrl' | 'eventTypes' | 'isActive'>

/** What may change; an absent field keeps its value. */
export interface WebhookChange {
  readonly targetUrl?: string | undefined
  readonly eventTypes?: readonly string[] | undefined
  readonly isActive?: boolean | undefined
}

const COLUMNS = `id, environment_id as "environmentId", target_url as "targetUrl", event_types as "eventTypes",
  is_active as "isActive", created_at as "createdAt", updated_at as "updatedAt", version`

/** Stores a webhook. */
export async function insertWebhook(tx: Tx, webhook: NewWebhook): Promise<WebhookRecord> {
  const inserted = await queryOne<WebhookRecord>(
    tx,
    `insert into webhook (environment_id, id, target_url, event_types, is_active) values (?, ?, ?, ?, ?)
     returning ${COLUMNS}`,
    [webhook.environmentId, webhook.id, webhook.targetUrl, webhook.eventTypes, webhook.isActive],
  )
  if (inserted === undefined) throw new Error('an insert returned no row')
  return inserted
}

/** Rides on the primary key. */
export async function findWebhook(tx: Tx, environmentId: string, id: string): Promise<WebhookRecord | undefined> {
  return await queryOne(tx, `select ${COLUMNS} from webhook where environment_id = ? and id = ?`, [environmentId, id])
}

/** Like `findWebhook`, and holds the row until the transaction ends. */
export async function lockWebhook(tx: Tx, environmentId: string, id: string): Promise<WebhookRecord | undefined> {
  return await queryOne(tx, `select ${COLUMNS} from webhook where environment_id = ? and id = ? for update`, [
    environmentId,
    id,
  ])
}

/** Webhooks of the environment below `before` (all when undefined), newest first. Rides on the primary key. */
export async function selectWebhooks(
  tx: Tx,
  environmentId: string,
  before: string | undefined,
  limit: number,
): Promise<readonly WebhookRecord[]> {
  return await query(
    tx,
    `select ${COLUMNS} from webhook where environment_id = ? and (?::uuid is null or id < ?) order by id desc limit ?`,
    [environmentId, before ?? null, before ?? null, limit],
  )
}

/** Changes the given fields; `undefined` when there is no such webhook or its version is not the given one. */
export async function updateWebhookRow(
  tx: Tx,
  environmentId: string,
  id: string,
  change: WebhookChange,
  version: number | undefined,
): Promise<WebhookRecord | undefined> {
  return await queryOne(
    tx,
    `update webhook set target_url = coalesce(?, target_url), event_types = coalesce(?::text[], event_types),
       is_active = coalesce(?, is_active), updated_at = now(), version = version + 1
     where environment_id = ? and id = ? and version = coalesce(?, version) returning ${COLUMNS}`,
    [change.targetUrl ?? null, change.eventTypes ?? null, change.isActive ?? null, environmentId, id, version ?? null],
  )
}

/**
 * Deletes a webhook; returns whether it was there in the given version.
 *
 * Breaks the foreign key of triggers while some send to it.
 */
export async function deleteWebhookRow(
  tx: Tx,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const sql = 'delete from webhook where environment_id = ? and id = ? and version = coalesce(?, version)'
  return (await execute(tx, sql, [environmentId, id, version ?? null])) > 0
}
