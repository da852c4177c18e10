import type { PollLoopSpec } from '../base/index.ts'
import { AccountSubscriber, type SubscriberOptions } from './subscriber.ts'

/** How long a new account waits for its subscription while one of the loops is free. */
const INTERVAL_MS = 1_000
/** Loops, so that a third party that does not answer blocks one of them. */
const AT_ONCE = 4

/** What a worker does for subscriptions, as loops. Any number of workers share them. */
export function subscriptionLoops(options: SubscriberOptions): readonly PollLoopSpec[] {
  const subscriber = new AccountSubscriber(options)
  return Array.from({ length: AT_ONCE }, (_, index) => ({
    name: `webhook-subscriptions-${index + 1}`,
    intervalMs: INTERVAL_MS,
    runOnce: () => subscriber.runOnce(),
  }))
}
