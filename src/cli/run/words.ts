import type { FollowedRun, ResourceProgress } from '../../client/index.ts'

/** `12 345`. */
export function formatCount(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ' ')
}

/** `1 page`, `2 pages`. */
export function pluralize(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** `8 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  if (hours > 0) return `${hours} h ${minutes} min`
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`
}

/** `12 of 40 records`, as far as the third party says how many there are. */
export function formatRead({ fetched, reportedTotal: claimedTotal }: ResourceProgress): string {
  return claimedTotal === undefined || claimedTotal < fetched
    ? `${formatCount(fetched)} read`
    : `${formatCount(fetched)} of ${formatCount(claimedTotal)} read`
}

/** What the status means for whoever waits; empty where it says enough. */
export function statusNote({ status, attempt, error, skipReason, waiting, resources }: FollowedRun): string {
  if (waiting !== undefined) return waiting
  const last = error === undefined ? '' : `${error.reason}: ${error.message}`
  if (status === 'created') return last === '' ? 'waits to be taken up' : `is tried again, last ${last}`
  if (status === 'rate_limited') return 'waits for the third party, goes on by itself'
  if (status === 'skipped') return skipReason ?? ''
  if (status === 'failed') return last
  if (status === 'partially_completed')
    return `not complete, to be read again by the next run: ${listIncomplete(resources)}`
  return attempt > 1 ? `attempt ${attempt}` : ''
}

/** `issues (error), labels`. */
function listIncomplete(resources: FollowedRun['resources']): string {
  const missing = resources.filter(({ isComplete }) => !isComplete)
  return missing.map(({ name, stopReason }) => (stopReason === undefined ? name : `${name} (${stopReason})`)).join(', ')
}

/** How long it has taken, until now or until its end. */
export function elapsedMs({ startedAt, finishedAt }: FollowedRun, now: Date): number | undefined {
  return startedAt && (finishedAt ?? now).getTime() - startedAt.getTime()
}

/** What came of a run that is over, in one line. */
export function formatResult(run: FollowedRun): string {
  const sum = (of: 'fetched' | 'delivered' | 'failed') => run.resources.reduce((all, each) => all + each[of], 0)
  const took = elapsedMs(run, new Date(0))
  const note = statusNote(run)
  const status = run.status.replaceAll('_', ' ')
  return [
    took === undefined ? status : `${status} after ${formatDuration(took)}`,
    `: ${pluralize(sum('fetched'), 'record')} read, ${formatCount(sum('delivered'))} delivered`,
    sum('failed') === 0 ? '' : `, ${formatCount(sum('failed'))} failed`,
    run.status === 'completed' || note === '' ? '' : `\n${note}`,
  ].join('')
}
