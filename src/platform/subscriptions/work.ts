import type { PollLoopSpec } from '../../foundation/base/index.ts'
import { parallelLoops } from '../../foundation/queue/index.ts'
import { AccountSubscriber, type SubscriberOptions } from './subscriber.ts'

/** How long a new account waits for its subscription while one of the loops is free. */
const INTERVAL_MS = 1_000
const AT_ONCE = 4

/** What a worker does for subscriptions, as loops. Any number of workers share them. */
export function subscriptionLoops(options: SubscriberOptions): readonly PollLoopSpec[] {
  const subscriber = new AccountSubscriber(options)
  const runOnce = () => subscriber.runOnce()
  return parallelLoops(AT_ONCE, { name: 'webhook-subscriptions', intervalMs: INTERVAL_MS, runOnce })
}
