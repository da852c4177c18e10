import type { JsonObject } from '../../../src/foundation/json/index.ts'
import type { DeliveryPolicy, ProviderRequest } from './delivery.ts'
import type { HealthPolicy } from './health.ts'
import type { ProviderClock } from './units.ts'

/** A subscription as the provider keeps it: where it delivers, and what both sides have agreed on. */
export interface DoubleSubscription {
  readonly id: string
  readonly address: string
  /** Agreed secret: given with the request, made in the handshake, or the application's own. */
  secret: string
  /** Epoch milliseconds; absent: it does not end. */
  expiresAt: number | undefined
}

/** What is delivered in one request. */
export interface DoubleDelivery {
  readonly deliveryId: string
  /** Record ids, with the account at the provider that each is about. */
  readonly items: readonly { readonly id: string; readonly account: string }[]
}

/** How one provider behaves. */
export interface ProviderProfile {
  readonly name: string
  readonly policy: DeliveryPolicy
  readonly health: HealthPolicy
  /** Whether subscriptions are ordered by requests; else the address is entered once, by hand. */
  readonly isOrdered: boolean
  /** Deliveries go to the address of the installation, and name the accounts. */
  readonly isShared: boolean
  /** Life of a subscription in milliseconds. */
  readonly lifeMs?: number
  /** The handshake is repeated so often; a failure disables the subscription. */
  readonly revalidateMs?: number
  /** An empty delivery is sent so often; it has to be accepted. */
  readonly heartbeatMs?: number
  /** What the definition says about webhooks; the rest is the same for all. */
  readonly webhook: JsonObject
  /** Variables of the installation. */
  readonly variables: JsonObject
  /** The handshake: the request, and whether its answer proves the address. */
  readonly handshake?: {
    request(subscription: DoubleSubscription, token: string): ProviderRequest
    isProven(
      answer: { status: number; body: string; header(name: string): string },
      token: string,
      secret: string,
    ): boolean
  }
  request(subscription: DoubleSubscription, delivery: DoubleDelivery, retry: number): ProviderRequest
}

/** Makes a profile for a clock. */
export type MakeProfile = (clock: ProviderClock) => ProviderProfile
