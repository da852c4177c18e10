/** What became of a delivery so far. */
export type DeliveryState = 'pending' | 'delivered' | 'failed' | 'discarded'

/**
 * Why a delivery was created: `automatic` for an event that a webhook asks for, `replay` of one delivery, `recovery` of failed
 * ones, `missing` for an event that had none, `test` by a call.
 */
export type DeliveryTrigger = 'automatic' | 'replay' | 'recovery' | 'missing' | 'test'

/** A delivery to be created: an event that is sent to a webhook. */
export interface NewDelivery {
  readonly environmentId: string
  readonly webhookId: string
  readonly eventId: string
  readonly trigger: DeliveryTrigger
}
