import { newestFirst, nextVersion, queryOne, type Tx, whereVersion } from '../../database/index.ts'

/** A webhook as stored; its signing secrets are rows of "secret". */
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

/** Fields that change; an absent one keeps its value. */
export interface WebhookChange {
  readonly targetUrl?: string | undefined
  readonly eventTypes?: readonly string[] | undefined
  readonly isActive?: boolean | undefined
}

const COLUMNS = [
  'id',
  'environment_id as environmentId',
  'target_url as targetUrl',
  'event_types as eventTypes',
  'is_active as isActive',
  'created_at as createdAt',
  'updated_at as updatedAt',
  'version',
]

export async function insertWebhook(tx: Tx, webhook: NewWebhook): Promise<WebhookRecord> {
  const [inserted] = await tx('webhook')
    .insert({
      environment_id: webhook.environmentId,
      id: webhook.id,
      target_url: webhook.targetUrl,
      event_types: webhook.eventTypes,
      is_active: webhook.isActive,
    })
    .returning(COLUMNS)
  return inserted
}

/** Raw, because every run to a webhook reads it. Uses the primary key. */
export async function findWebhook(tx: Tx, environmentId: string, id: string): Promise<WebhookRecord | undefined> {
  return await queryOne(
    tx,
    `select id, environment_id as "environmentId", target_url as "targetUrl", event_types as "eventTypes",
       is_active as "isActive", created_at as "createdAt", updated_at as "updatedAt", version
     from webhook where environment_id = :environmentId and id = :id`,
    { environmentId, id },
  )
}

/** Reads a webhook and locks its row until the transaction ends. Uses the primary key. */
export async function lockWebhook(tx: Tx, environmentId: string, id: string): Promise<WebhookRecord | undefined> {
  return await tx('webhook').where({ environment_id: environmentId, id }).forUpdate().first(COLUMNS)
}

/** At most `limit` webhooks of the environment below the id `before`, newest first. Uses the primary key. */
export async function listWebhooks(
  tx: Tx,
  environmentId: string,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly WebhookRecord[]> {
  return await tx('webhook').select(COLUMNS).where({ environment_id: environmentId }).modify(newestFirst, page)
}

/** Changes the given fields; `undefined` when there is no such webhook, or not in this version. Uses the primary key. */
export async function updateWebhookRow(
  tx: Tx,
  environmentId: string,
  id: string,
  { targetUrl, eventTypes, isActive }: WebhookChange,
  version: number | undefined,
): Promise<WebhookRecord | undefined> {
  const [updated] = await tx('webhook')
    .where({ environment_id: environmentId, id })
    .modify(whereVersion, version)
    .update({ target_url: targetUrl, event_types: eventTypes, is_active: isActive, ...nextVersion(tx) })
    .returning(COLUMNS)
  return updated
}

/**
 * Deletes a webhook; returns whether it existed in this version. Uses the primary key.
 *
 * @throws the violation of a foreign key while triggers send to it
 */
export async function deleteWebhookRow(
  tx: Tx,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  return (await tx('webhook').where({ environment_id: environmentId, id }).modify(whereVersion, version).delete()) > 0
}
