import type { JsonAnswer } from '../../support/rest.ts'
import type { GitHub, Holdings } from './github.ts'
import { readLedger, type Tick } from './ledger.ts'
import type { ReceivedRun, ReceivedRuns } from './received-runs.ts'
import type { Receiver } from './receiver.ts'
import { counted, printCheck, printFact } from './report.ts'
import type { DemoSession } from './session.ts'
import type { DemoSetup } from './setup.ts'

/** What the audit compares. */
export interface AuditDeps {
  readonly session: DemoSession
  readonly setup: DemoSetup
  readonly github: GitHub
  readonly receiver: Receiver
  readonly received: ReceivedRuns
  readonly forgeriesSent: number
}

/** Everything that is compared, once the trigger is paused and its runs have ended. */
interface AuditData {
  readonly ledger: readonly Tick[]
  /** Runs from the API, in the order of the ledger. */
  readonly runs: readonly JsonAnswer[]
  /** Runs from the receiver's deliveries. */
  readonly seen: readonly ReceivedRun[]
  readonly holdings: Holdings
}

/** One comparison. */
interface AuditResult {
  readonly label: string
  readonly text: string
  readonly isCorrect: boolean
}

/** Pauses the trigger, waits for its runs and compares all totals. @returns the names of those that differ */
export async function audit(deps: AuditDeps): Promise<readonly string[]> {
  const checks = compareTotals(deps, await collectAuditData(deps))
  for (const { label, text, isCorrect } of checks) printCheck(label, text, isCorrect)
  return checks.filter(({ isCorrect }) => !isCorrect).map(({ label }) => label)
}

async function collectAuditData({ session, setup, github, received }: AuditDeps): Promise<AuditData> {
  const { paused } = await setup.post(`/sync-job-cron-trigger/${setup.triggerId}/pause`, {})
  printFact('cron trigger', paused === true ? 'paused, so that the totals are final' : 'is NOT paused')
  const ledger = await readLedger(setup)
  const fired = ledger.flatMap(({ runId, outcome }) => (outcome === 'fired' && runId !== undefined ? [runId] : []))
  await session.waitFor(`the last of ${counted(fired.length, 'run')} to arrive`, () =>
    fired.every((id) => received.runs.some((run) => run.id === id && run.isCompleted)) ? true : undefined,
  )
  const runs = await session.pollFor(`${counted(fired.length, 'run')} to be recorded as completed`, async () => {
    const found = await Promise.all(fired.map((id) => setup.get(`/sync-job-run/${id}`)))
    return found.every(({ finished_at }) => finished_at) ? found : undefined
  })
  return { ledger, runs, seen: received.runs, holdings: await github.holdings(github.token) }
}

function compareTotals({ receiver, forgeriesSent }: AuditDeps, books: AuditData): readonly AuditResult[] {
  const { ledger, runs, seen } = books
  const outcomes = (outcome: Tick['outcome']) => ledger.filter((tick) => tick.outcome === outcome).length
  const completed = runs.filter(({ status }) => status === 'completed').length
  return [
    {
      label: 'ticks',
      text: `${outcomes('fired')} fired, ${outcomes('skipped')} skipped, ${outcomes('missed')} missed`,
      isCorrect: outcomes('missed') === 0 && hasOneRunPerTick(books),
    },
    {
      label: 'runs',
      text: `${completed} completed, ${seen.length} received, one per fired tick`,
      isCorrect: completed === outcomes('fired') && seen.length === completed,
    },
    compareResource('repositories', books),
    compareResource('issues', books),
    {
      label: 'sequence numbers',
      text: 'from 1 without gaps in every run',
      isCorrect: seen.every(({ sequences }) => sequences.every((sequence, index) => sequence === index + 1)),
    },
    {
      label: 'deliveries',
      text: `${receiver.verified} verified, ${counted(receiver.duplicates, 'duplicate')}`,
      isCorrect: receiver.verified - receiver.duplicates === seen.reduce((sum, run) => sum + run.deliveries, 0),
    },
    {
      label: 'forgeries',
      text: `${forgeriesSent} sent, ${receiver.rejected} rejected`,
      isCorrect: receiver.rejected === forgeriesSent,
    },
  ]
}

/** Every fired tick has its own run, scheduled for the time of the tick. */
function hasOneRunPerTick({ ledger, runs }: AuditData): boolean {
  const fired = ledger.filter(({ outcome }) => outcome === 'fired')
  const isSame = fired.every(({ scheduledFor }, index) => runs[index]?.scheduled_for === scheduledFor)
  return isSame && new Set(runs.map(({ id }) => id)).size === fired.length
}

/** Every run delivered each record of GitHub once, and its statistics say so. */
function compareResource(resource: keyof Holdings, { runs, seen, holdings }: AuditData): AuditResult {
  const held = holdings[resource]
  const delivered = seen.map((run) => run.recordIds.get(resource) ?? [])
  const areDelivered = delivered.every((ids) => ids.length === held.size && new Set(ids).isSubsetOf(held))
  const isUnique = delivered.every((ids) => new Set(ids).size === ids.length)
  const areCounted = runs.every(({ resource_stats }) => {
    const stats = resource_stats.find((each: JsonAnswer) => each.resource === resource)
    return stats?.fetched === held.size && stats.delivered === held.size && stats.failed === 0 && stats.complete
  })
  const total = delivered.reduce((sum, ids) => sum + ids.length, 0)
  const perRun = [...new Set(delivered.map((ids) => ids.length))].join(' or ')
  return {
    label: resource,
    text: `${total} delivered in ${counted(seen.length, 'run')}, ${perRun} each; GitHub holds ${held.size}`,
    isCorrect: areDelivered && isUnique && areCounted,
  }
}
