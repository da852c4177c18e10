/** What became of a delivery so far. */
export const DELIVERY_STATES = ['pending', 'delivered', 'failed', 'discarded'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/**
 * Why a delivery was created: `automatic` for an event that a webhook asks for, `replay` of one delivery, `recovery` of failed
 * ones, `missing` for an event that had none, `test` by a call.
 */
export type DeliveryTrigger = 'automatic' | 'replay' | 'recovery' | 'missing' | 'test'

/** Attempts of a delivery: the first one, and those of the retry schedule. */
export const DELIVERY_ATTEMPTS_MAX = 10

/** A delivery to be created: an event that is sent to a webhook. */
export interface NewDelivery {
  readonly environmentId: string
  readonly webhookId: string
  readonly eventId: string
  readonly trigger: DeliveryTrigger
}

/** A delivery as stored. */
export interface DeliveryRecord extends NewDelivery {
  /** UUIDv7 of the time at which it was created. */
  readonly id: string
  readonly eventType: string
  readonly integratedAccountId: string | null
  readonly state: DeliveryState
  /** Attempts that were made and count. */
  readonly attempts: number
  /** Of the last attempt; null before the first one and without a response. */
  readonly lastStatus: number | null
  /** What went wrong at the last attempt, or why it was discarded. */
  readonly lastErrorClass: string | null
  /** When it is or was due; null: it has ended. */
  readonly nextAttemptAt: Date | null
  readonly createdAt: Date
  readonly finishedAt: Date | null
}

/** Headers in their order, duplicates included. */
export type HeaderPairs = readonly (readonly [name: string, value: string])[]

/** An attempt as stored. */
export interface AttemptRecord {
  /** From 1. */
  readonly n: number
  readonly scheduledAt: Date
  readonly startedAt: Date
  /** Milliseconds. The first three are null when an open connection was used, the fourth when nothing was received. */
  readonly dnsMs: number | null
  readonly connectMs: number | null
  readonly tlsMs: number | null
  readonly firstByteMs: number | null
  readonly totalMs: number
  /** Null when nothing was received. */
  readonly status: number | null
  /** Null when it was accepted. */
  readonly errorClass: string | null
  readonly errorMessage: string | null
  readonly remoteAddress: string | null
  /** As sent, with secrets masked. */
  readonly requestHeaders: HeaderPairs
  readonly responseHeaders: HeaderPairs | null
  /** The first 16 KiB. */
  readonly responseBody: string | null
}
