import { type Failure, isTransient } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { RecordItem } from './mapping.ts'

/** What is known of an account that receives an item. */
export interface ReceivingAccount {
  readonly id: string
  readonly tenantId: string
}

/** One line of the list of what a request led to: an item and an account, or an item that found none. */
export type RoutedItem = {
  /** As it was looked up; null for the address of an account. */
  readonly lookupValue: string | null
} & (
  | { readonly state: 'routed'; readonly account: ReceivingAccount; readonly item: RecordItem }
  | {
      readonly state: 'hint' | 'ignored'
      readonly account: ReceivingAccount
      readonly resource: string
      /** What follows, for people. */
      readonly detail: string
    }
  | {
      readonly state: 'unrouted'
      readonly resource: string | null
      readonly recordId: string | null
      /** Why no account was found. */
      readonly detail: string
    }
)

/** Context keys that a request changes. */
export interface ContextEffect {
  readonly accountIds: readonly string[]
  readonly values: JsonObject
  readonly secretKeys: readonly string[]
}

/** Everything that processing a request leads to; nothing of it is done before all of it is known. */
export interface InboundEffects {
  readonly integration: { readonly id: string; readonly name: string }
  readonly context: ContextEffect | undefined
  readonly items: readonly RoutedItem[]
}

/** In which step processing failed. */
export type ProcessingStep = 'load' | 'transform' | 'handshake' | 'context' | 'mapping' | 'routing' | 'store'

/** Whether no item found an account. */
export function isUnrouted({ items }: InboundEffects): boolean {
  return items.length > 0 && items.every(({ state }) => state === 'unrouted')
}

/** How processing ended. */
export type ProcessingOutcome =
  | { readonly kind: 'done'; readonly effects: InboundEffects; readonly trace: JsonObject }
  /** `isTransient`: it may succeed later although nothing is changed. */
  | {
      readonly kind: 'failed'
      readonly isTransient: boolean
      readonly error: ProcessingError
      readonly trace: JsonObject
    }

/** Why processing failed; secrets are redacted. */
type ProcessingError = {
  readonly step: ProcessingStep
  /** A name of the failure catalogue, or a stable name of its own such as `lease_expired`. */
  readonly reason: string
  readonly message: string
}

/** Of an event whose content was removed. */
export const CONTENT_EXPUNGED: ProcessingError = {
  step: 'load',
  reason: 'CONTENT_EXPUNGED',
  message: 'its content was removed before it was processed',
}

/** A step failed. @param message redacted; absent: the failure's, which holds nothing of the request */
export function failedAt(
  step: ProcessingStep,
  failure: Failure,
  trace: JsonObject,
  message = failure.publicMessage,
): ProcessingOutcome {
  const error = { step, reason: failure.reason, message }
  return { kind: 'failed', isTransient: isTransient(failure), error, trace }
}
