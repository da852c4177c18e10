import type { Json, JsonObject } from '../../foundation/json/index.ts'

/** Whose address a request came to. */
export type SourceKind = 'integrated_account' | 'environment_integration'

/**
 * - `handshake`: answered in place of an event, kept for a day
 * - `received`: accepted and waiting to be processed
 * - `processed`, `failed`: what processing ended with
 * - `unrouted`: processed, and no item found an account
 * - `rejected`: failed its signature, kept for a day
 */
export const INBOUND_STATES = ['handshake', 'received', 'processed', 'failed', 'rejected', 'unrouted'] as const
export type InboundState = (typeof INBOUND_STATES)[number]

/** `none`: the definition does not authenticate requests. */
export type SignatureState = 'none' | 'valid' | 'invalid'

/** A request of a third party as stored, without its content. */
export interface InboundEventRecord {
  readonly environmentId: string
  /** UUIDv7 of the time at which it was received. */
  readonly id: string
  readonly sourceKind: SourceKind
  /** The id in the address. */
  readonly sourceId: string
  readonly environmentIntegrationId: string
  /** Null: the address is one of an installation. */
  readonly integratedAccountId: string | null
  /** Upper case. */
  readonly method: string
  readonly path: string
  /** As received, without the question mark. */
  readonly query: string
  readonly remoteAddress: string
  /** Of the body as received. */
  readonly bodyBytes: number
  readonly state: InboundState
  readonly signature: SignatureState
  readonly dedupeKey: string | null
  /** Further requests with the same key. */
  readonly duplicates: number
  readonly receivedAt: Date
  readonly providerTime: Date | null
  readonly processedAt: Date | null
  /** `{step, reason, message}` */
  readonly error: JsonObject | null
  /** What each step did, by step. */
  readonly trace: JsonObject
}

/** Headers in their order, duplicates included; names as received. */
export type HeaderList = readonly (readonly [name: string, value: string])[]

/** What was sent; it has fewer days of retention than the event and may be expunged. */
export interface InboundContent {
  readonly headers: HeaderList
  /** As received; the first 4 KiB of a rejected request. */
  readonly body: Uint8Array
  /** The payload that `payload_transform` made; null: it is parsed from the body. */
  readonly payload: Json
}

/** What one item of an event led to, as stored. */
export interface InboundItemRecord {
  /** Counts the items of the event, replays included. */
  readonly index: number
  readonly state: 'routed' | 'unrouted' | 'hint' | 'ignored'
  readonly integratedAccountId: string | null
  /** The value that was looked for in the contexts of accounts. */
  readonly lookupValue: string | null
  /** The outbox event. */
  readonly eventId: string | null
  readonly resource: string | null
  readonly recordId: string | null
  /** Why, in words. */
  readonly detail: string | null
}

/** The time that a third party names; null for what is not a time, or none that can be stored. */
export function dateOf(epochMs: number): Date | null {
  return epochMs >= 0 && epochMs <= TIME_MS_MAX ? new Date(epochMs) : null
}

const TIME_MS_MAX = Date.UTC(9999, 11, 31)
