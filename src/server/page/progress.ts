import type { LinkSession, LinkTransition } from '../../platform/links/index.ts'
import type { ProgressStep } from './views/progress.ts'

/** The statuses in which the account is being connected, in their order. */
const STEPS = ['exchanging', 'post_install', 'validating'] as const

/**
 * The steps of connecting with their states and durations, of the last attempt.
 *
 * @param transitions of the session, oldest first
 * @param hasConsent whether a third party's grant is exchanged; credentials that were entered need no such step
 */
export function progressOf(
  { status }: Pick<LinkSession, 'status'>,
  transitions: readonly Pick<LinkTransition, 'toStatus' | 'occurredAt'>[],
  { now, hasConsent }: { readonly now: Date; readonly hasConsent: boolean },
): readonly ProgressStep[] {
  const entered = STEPS.map((step) => transitions.findLast(({ toStatus }) => toStatus === step)?.occurredAt)
  const current = (STEPS as readonly LinkSession['status'][]).indexOf(status)
  const steps = STEPS.map((name, index): ProgressStep => {
    const startedAt = index > current ? undefined : entered[index]
    const endedAt = index < current ? entered[index + 1] : now
    return {
      name,
      state: index < current ? 'done' : index === current ? 'active' : 'waiting',
      durationMs:
        startedAt === undefined || endedAt === undefined
          ? undefined
          : Math.max(0, endedAt.getTime() - startedAt.getTime()),
    }
  })
  return hasConsent || status === 'exchanging' ? steps : steps.slice(1)
}

/** Changes with everything that the page of a session shows. */
export function revisionOf({ version, status }: Pick<LinkSession, 'version' | 'status'>): string {
  return `${version}-${status}`
}
