/**
 * Subscriptions of accounts at third parties (`webhook.subscription` of a definition): created, renewed, replaced and deleted by
 * requests of the definition; and how often the third party calls about an account.
 *
 * Lives here: when which request is made, and what its response means. Never here: what the third party then sends.
 */

export { InboundActivity, silenceMonitor } from './activity.ts'
export { createSilentReporter } from './request.ts'
export { isSubscribing, readWebhookOverview, type WebhookOverview } from './sql/subscription.ts'
export { createAccountSubscriptions, recreateSubscriptions } from './subscription.ts'
export { subscriptionLoops } from './work.ts'
