import type { LinkSession } from '../links/index.ts'
import type { ProgressStep } from './views/progress.ts'

/** The statuses in which the account is being connected, in their order. */
const STEPS = ['exchanging', 'post_install', 'validating'] as const

/** The steps of connecting with their states. A session without a consent has nothing to exchange. */
export function progressOf({ status, statusAt }: LinkSession, now: Date): readonly ProgressStep[] {
  const current = (STEPS as readonly string[]).indexOf(status)
  return STEPS.map((name, index) => ({
    name,
    state: index < current ? 'done' : index === current ? 'active' : 'waiting',
    durationMs: index === current ? Math.max(0, now.getTime() - statusAt.getTime()) : undefined,
  }))
}

/** Changes with everything that the page of a session shows. */
export function revisionOf({ version, status }: LinkSession): string {
  return `${version}-${status}`
}
