import { type Clock, etagMismatch, invalidFields, newId, notFound, type Violation } from '../base/index.ts'
import { mapForeignKeyToInUse, type Tx } from '../database/index.ts'
import { checkEventTypes } from '../events/index.ts'
import { deleteTriggersOf } from '../runs/index.ts'
import { type EndpointDeps, loadEndpoints } from './endpoint.ts'
import type { WebhookTarget } from './request.ts'
import { createSigningKey, rotateSigningKey, type SigningSecretStore, signingSecretRef } from './signing.ts'
import {
  deleteWebhookRow,
  findWebhook,
  insertWebhook,
  lockWebhook,
  updateWebhookRow,
  type WebhookChange,
  type WebhookRecord,
} from './sql/webhook.ts'

/** What managing webhooks takes. */
export interface WebhookDeps {
  readonly secrets: SigningSecretStore
  readonly clock: Clock
  /** Completes "target_url …" for an address that may not be called, e.g. `must use http or https`. */
  readonly findUrlViolation: (url: string) => string | undefined
}

/** A webhook to be created. */
export interface WebhookInput {
  readonly targetUrl: string
  /** Names and `*` patterns of the event catalog; absent or empty: all events. */
  readonly eventTypes?: readonly string[] | undefined
  /** Absent: true. */
  readonly isActive?: boolean | undefined
}

/** A webhook with its new secret, for the one response that shows it. */
export interface WebhookWithSecret {
  readonly webhook: WebhookRecord
  readonly secret: string
}

/** The target of a run's events, or why it has none. */
export type WebhookTargetLookup =
  | { readonly kind: 'ready'; readonly target: WebhookTarget }
  | { readonly kind: 'missing' }
  | { readonly kind: 'inactive' }

/**
 * Creates a webhook with a random secret.
 *
 * @throws Failure URL_NOT_ALLOWED, INVALID_FIELD with every violation; nothing is stored then
 */
export async function createWebhook(
  deps: WebhookDeps,
  tx: Tx,
  environmentId: string,
  input: WebhookInput,
): Promise<WebhookWithSecret> {
  assertValidWebhook(deps, input)
  const webhook = await insertWebhook(tx, {
    id: newId(deps.clock.now().getTime()),
    environmentId,
    targetUrl: input.targetUrl,
    eventTypes: input.eventTypes ?? [],
    isActive: input.isActive ?? true,
  })
  const secret = await createSigningKey(deps.secrets, tx, signingSecretRef(environmentId, webhook.id))
  return { webhook, secret }
}

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getWebhook(tx: Tx, environmentId: string, id: string): Promise<WebhookRecord> {
  return (await findWebhook(tx, environmentId, id)) ?? throwWebhookNotFound(id)
}

/**
 * Changes the given fields; none given changes nothing and returns the webhook.
 *
 * @param version the version the caller read; absent: any
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, URL_NOT_ALLOWED, INVALID_FIELD
 */
export async function updateWebhook(
  deps: WebhookDeps,
  tx: Tx,
  environmentId: string,
  input: WebhookChange & { readonly id: string; readonly version?: number | undefined },
): Promise<WebhookRecord> {
  const { id, version, ...change } = input
  assertValidWebhook(deps, change)
  const isEmpty = Object.values(change).every((value) => value === undefined)
  const updated = isEmpty ? undefined : await updateWebhookRow(tx, environmentId, id, change, version)
  if (updated !== undefined) return updated
  const stored = await getWebhook(tx, environmentId, id)
  if (isEmpty && (version === undefined || version === stored.version)) return stored
  throw etagMismatch('webhook', id)
}

/**
 * Deletes a webhook with its secrets, and with `force` the triggers that send to it, which could not run without it.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, RESOURCE_IN_USE
 */
export async function deleteWebhook(
  deps: Pick<WebhookDeps, 'secrets'>,
  tx: Tx,
  environmentId: string,
  input: { readonly id: string; readonly force?: boolean; readonly version?: number | undefined },
): Promise<void> {
  const { id, version, force = false } = input
  if (force) await deleteTriggersOf(tx, environmentId, 'webhook_id', id)
  const isDeleted = await deleteUnlessUsed(tx, environmentId, id, version)
  if (!isDeleted) {
    await getWebhook(tx, environmentId, id)
    throw etagMismatch('webhook', id)
  }
  await deps.secrets.remove(tx, signingSecretRef(environmentId, id))
}

/**
 * Rotates the webhook's secret; the previous one signs too for 24 hours. The webhook's version (etag) stays.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function rotateWebhookSecret(
  deps: WebhookDeps,
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<WebhookWithSecret> {
  const webhook = (await lockWebhook(tx, environmentId, id)) ?? throwWebhookNotFound(id)
  const ref = signingSecretRef(environmentId, id)
  const secret = await rotateSigningKey(deps.secrets, tx, ref, deps.clock.now())
  return { webhook, secret }
}

/** What sending to a webhook takes, when it may be sent to. */
export async function findWebhookTarget(
  deps: EndpointDeps,
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<WebhookTargetLookup> {
  const endpoint = (await loadEndpoints(deps, tx, [{ environmentId, webhookId: id }])).get(id)
  if (endpoint === undefined) return { kind: 'missing' }
  const isSent = endpoint.state === 'active' || endpoint.state === 'failing'
  return isSent ? { kind: 'ready', target: endpoint } : { kind: 'inactive' }
}

function assertValidWebhook(deps: WebhookDeps, input: WebhookChange): void {
  const urlProblem = input.targetUrl === undefined ? undefined : deps.findUrlViolation(input.targetUrl)
  const violations: Violation[] = []
  if (urlProblem !== undefined)
    violations.push({ field: 'target_url', description: urlProblem, rule: 'url.not_allowed' })
  violations.push(...checkEventTypes(input.eventTypes ?? [], 'event_types'))
  if (violations.length > 0)
    throw invalidFields(violations, urlProblem === undefined ? 'INVALID_FIELD' : 'URL_NOT_ALLOWED')
}

async function deleteUnlessUsed(tx: Tx, environmentId: string, id: string, version: number | undefined) {
  const why = 'triggers send to this webhook: point them elsewhere first, or set force to delete them with it'
  return await mapForeignKeyToInUse({ type: 'webhook', id, why }, () =>
    deleteWebhookRow(tx, environmentId, id, version),
  )
}

function throwWebhookNotFound(id: string): never {
  throw notFound('webhook', id)
}
