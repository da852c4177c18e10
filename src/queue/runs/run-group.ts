import type { RunDestination } from '../../storage/index.ts'

/** Runs whose records go to webhooks; any worker may claim them. */
export const WEBHOOK_QUEUE_GROUP = 'webhook'

/** Runs of one group and environment that may wait; a tick beyond is recorded as skipped, a call refused. */
export const QUEUE_DEPTH_MAX = 10_000

/** What the names of daemon groups begin with, before environment and key. */
export const DAEMON_QUEUE_GROUP_PREFIX = 'daemon:'

/** Who may claim a run: the workers, or the daemons of one group of one environment. */
export function queueGroupOf(environmentId: string, destination: RunDestination): string {
  return destination.kind === 'webhook' ? WEBHOOK_QUEUE_GROUP : daemonQueueGroup(environmentId, destination.groupKey)
}

/** The group of the daemons of an environment that registered under a key, which it ends with. */
export function daemonQueueGroup(environmentId: string, groupKey: string): string {
  return `${DAEMON_QUEUE_GROUP_PREFIX}${environmentId}:${groupKey}`
}
