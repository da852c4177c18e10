import {
  type Clock,
  etagMismatch,
  Failure,
  invalidFields,
  newId,
  notFound,
  type Violation,
} from '../../foundation/base/index.ts'
import { type Db, mapForeignKeyToInUse, type Tx } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { SecretRef } from '../../foundation/secrets/index.ts'
import { checkAskedEventTypes } from '../../platform/outbox/index.ts'
import type { WebhookEnvelope } from './envelope.ts'
import { parseFilter } from './filter.ts'
import { type CustomHeaders, checkHeaders, checkHeadersOfNewOrigin, writeHeaders } from './headers.ts'
import { type LoadedWebhook, type LoadWebhookDeps, loadWebhooks, type WebhookRateLimit } from './load-webhooks.ts'
import { EVENT_BYTES_DEFAULT } from './request.ts'
import {
  createSigningKey,
  ROTATION_SETTLE_MS,
  rotateSigningKey,
  type SigningSecretStore,
  signingSecretRef,
  type WebhookCompatibility,
} from './signing.ts'
import { resetFailure } from './sql/failure.ts'
import {
  deleteWebhookRow,
  findWebhook,
  hasWebhooks,
  insertWebhook,
  lockWebhook,
  updateWebhookRow,
  type WebhookRecord,
} from './sql/webhook.ts'

/** What managing webhooks takes. */
export interface WebhookDeps {
  readonly secrets: SigningSecretStore
  readonly clock: Clock
  /** Completes "target_url …" for an address that may not be called, e.g. `must use http or https`. */
  readonly findUrlViolation: (url: string) => string | undefined
}

/** What deleting a webhook takes. */
export interface WebhookDeletionDeps {
  readonly secrets: SigningSecretStore
  /** Triggers belong to a wing above this one. */
  readonly triggers: {
    /** Deletes every trigger that delivers to the webhook, with its schedule. */
    deleteByWebhook(tx: Tx, environmentId: string, webhookId: string): Promise<void>
  }
}

/** Fields of a webhook that callers set; an absent one keeps its value, or has its default in a new webhook. */
export interface WebhookChange {
  readonly targetUrl?: string | undefined
  /** Default: empty. */
  readonly description?: string | undefined
  /** Names and `*` patterns of the event catalog; empty (default): all events. */
  readonly eventTypes?: readonly string[] | undefined
  /** As `parseFilter` reads it; empty (default): every event of the types. */
  readonly filter?: JsonObject | undefined
  /** Custom headers to set by name: others stay, an empty value removes one, the mask `***` keeps it. */
  readonly headers?: CustomHeaders | undefined
  /** Default: `standard`. */
  readonly envelope?: WebhookEnvelope | undefined
  /** Default: `none`. */
  readonly compatibility?: WebhookCompatibility | undefined
  /** 0 requests (default): no limit. A window of 0 seconds is 1 second. */
  readonly rateLimit?: WebhookRateLimit | undefined
  /** Bytes of the body of a record event at most. Default: `EVENT_BYTES_DEFAULT`. */
  readonly maxEventBytes?: number | undefined
  /** Default: true. */
  readonly isActive?: boolean | undefined
}

/** A webhook to be created. */
export type WebhookInput = WebhookChange & { readonly targetUrl: string }

/** A webhook with its new secret, for the one response that shows it. */
export interface WebhookWithSecret {
  readonly webhook: WebhookRecord
  readonly secret: string
}

/** The target of a run's events, or why it has none. */
export type WebhookTargetLookup =
  | { readonly kind: 'ready'; readonly target: LoadedWebhook }
  | { readonly kind: 'missing' }
  | { readonly kind: 'inactive' }

/** Webhooks of one environment: each is matched against every event of it. Concurrent calls may exceed it by a few. */
const WEBHOOKS_MAX = 1_000

/**
 * Creates a webhook with a random secret.
 *
 * @throws Failure URL_NOT_ALLOWED, INVALID_FIELD with every violation, LIMIT_REACHED; nothing is stored then
 */
export async function createWebhook(
  deps: WebhookDeps,
  tx: Db,
  environmentId: string,
  input: WebhookInput,
): Promise<WebhookWithSecret> {
  assertValidWebhook(deps, input)
  if (await hasWebhooks(tx, environmentId, WEBHOOKS_MAX))
    throw new Failure('LIMIT_REACHED', `an environment has at most ${WEBHOOKS_MAX} webhooks: delete some first`)
  const id = newId(deps.clock.now().getTime())
  const ref = signingSecretRef(environmentId, id)
  const headerNames = await storeHeaders(deps, tx, ref, [], input.headers ?? {})
  const webhook = await insertWebhook(tx, {
    id,
    environmentId,
    targetUrl: input.targetUrl,
    description: input.description ?? '',
    eventTypes: input.eventTypes ?? [],
    filter: input.filter ?? {},
    headerNames,
    envelope: input.envelope ?? 'standard',
    compatibility: input.compatibility ?? 'none',
    ...rateLimitColumns(input.rateLimit ?? NO_RATE_LIMIT),
    maxEventBytes: input.maxEventBytes ?? EVENT_BYTES_DEFAULT,
    isActive: input.isActive ?? true,
  })
  return { webhook, secret: await createSigningKey(deps.secrets, tx, ref) }
}

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getWebhook(tx: Db, environmentId: string, id: string): Promise<WebhookRecord> {
  return (await findWebhook(tx, environmentId, id)) ?? throwWebhookNotFound(id)
}

/**
 * Changes the given fields; none given changes nothing and returns the webhook. Setting `isActive` forgets the failures of the
 * webhook, and why the service turned it off. A `targetUrl` of another origin takes each custom header again.
 *
 * @param tx a transaction: secrets and row change together
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
  const stored = (await lockWebhook(tx, environmentId, id)) ?? throwWebhookNotFound(id)
  if (version !== undefined && version !== stored.version) throw etagMismatch('webhook', id)
  if (Object.values(change).every((value) => value === undefined)) return stored
  assertHeadersOfOrigin(stored, change)
  const { headers, rateLimit, ...columns } = change
  const ref = signingSecretRef(environmentId, stored.id)
  const headerNames = headers === undefined ? undefined : await storeHeaders(deps, tx, ref, stored.headerNames, headers)
  if (change.isActive !== undefined) await resetFailure(tx, { environmentId, webhookId: id })
  const limit = rateLimit === undefined ? {} : rateLimitColumns(rateLimit)
  return await updateWebhookRow(tx, environmentId, id, { ...columns, ...limit, headerNames })
}

/**
 * Deletes a webhook with its secrets, and with `force` the triggers that send to it, which could not run without it.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, RESOURCE_IN_USE
 */
export async function deleteWebhook(
  deps: WebhookDeletionDeps,
  tx: Tx,
  environmentId: string,
  input: { readonly id: string; readonly force?: boolean; readonly version?: number | undefined },
): Promise<void> {
  const { id, version, force = false } = input
  // Under the lock no trigger can be created for it.
  if (force && (await lockWebhook(tx, environmentId, id)) !== undefined)
    await deps.triggers.deleteByWebhook(tx, environmentId, id)
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

/**
 * Waits until the rotation that was committed holds in every process: from the answer on each request is signed with the new
 * secret too. Ends early when the caller's signal aborts.
 */
export async function settleRotation({ clock }: Pick<WebhookDeps, 'clock'>, signal: AbortSignal): Promise<void> {
  await clock.sleep(ROTATION_SETTLE_MS, signal)
}

/** What sending to a webhook takes, when it may be sent to. */
export async function findWebhookTarget(
  deps: LoadWebhookDeps,
  tx: Db,
  environmentId: string,
  id: string,
): Promise<WebhookTargetLookup> {
  const webhook = (await loadWebhooks(deps, tx, [{ environmentId, webhookId: id }])).get(id)
  if (webhook === undefined) return { kind: 'missing' }
  const isSent = webhook.state === 'active' || webhook.state === 'failing'
  return isSent ? { kind: 'ready', target: webhook } : { kind: 'inactive' }
}

function assertValidWebhook(deps: WebhookDeps, input: WebhookChange): void {
  const urlProblem = input.targetUrl === undefined ? undefined : deps.findUrlViolation(input.targetUrl)
  const violations: Violation[] = []
  if (urlProblem !== undefined)
    violations.push({ field: 'target_url', description: urlProblem, rule: 'url.not_allowed' })
  violations.push(...checkAskedEventTypes(input.eventTypes ?? [], 'event_types'))
  violations.push(...parseFilter(input.filter ?? {}, 'filter').violations)
  violations.push(...checkHeaders(input.headers ?? {}, 'headers'))
  if (violations.length > 0)
    throw invalidFields(violations, urlProblem === undefined ? 'INVALID_FIELD' : 'URL_NOT_ALLOWED')
}

/** Values of headers are secrets of the receiver: who may change the address must not learn them by it. @throws Failure INVALID_FIELD */
function assertHeadersOfOrigin(stored: WebhookRecord, { targetUrl, headers = {} }: WebhookChange): void {
  if (targetUrl === undefined || new URL(targetUrl).origin === new URL(stored.targetUrl).origin) return
  const violations = checkHeadersOfNewOrigin(stored.headerNames, headers)
  if (violations.length > 0) throw invalidFields(violations, 'INVALID_FIELD')
}

/** The names of the headers that the webhook has now. @throws Failure INVALID_FIELD */
async function storeHeaders(
  deps: WebhookDeps,
  tx: Db,
  ref: SecretRef,
  stored: readonly string[],
  headers: CustomHeaders,
): Promise<readonly string[]> {
  const written = await writeHeaders(deps.secrets, tx, ref, stored, headers)
  if ('violations' in written) throw invalidFields(written.violations, 'INVALID_FIELD')
  return written.names
}

const NO_RATE_LIMIT: WebhookRateLimit = { requests: 0, windowSeconds: 0 }

function rateLimitColumns({ requests, windowSeconds }: WebhookRateLimit) {
  if (requests === 0) return { rateLimitRequests: null, rateLimitSeconds: null }
  return { rateLimitRequests: requests, rateLimitSeconds: Math.max(windowSeconds, 1) }
}

async function deleteUnlessUsed(tx: Db, environmentId: string, id: string, version: number | undefined) {
  const why = 'triggers send to this webhook: point them elsewhere first, or set force to delete them with it'
  return await mapForeignKeyToInUse({ type: 'webhook', id, why }, () =>
    deleteWebhookRow(tx, environmentId, id, version),
  )
}

function throwWebhookNotFound(id: string): never {
  throw notFound('webhook', id)
}
