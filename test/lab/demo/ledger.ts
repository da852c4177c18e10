import type { DemoSetup } from './setup.ts'

const PAGE_SIZE = 200

/** A tick with its outcome. */
export interface Tick {
  readonly scheduledFor: string
  readonly outcome: 'fired' | 'skipped' | 'missed'
  /** Why it was skipped. */
  readonly reason: string | undefined
  /** Its run. */
  readonly runId: string | undefined
}

/** The tick ledger of the trigger, oldest first. The demo has far fewer ticks than a page. */
export async function readLedger({ get, triggerId }: Pick<DemoSetup, 'get' | 'triggerId'>): Promise<readonly Tick[]> {
  const { ticks, next_page_token } = await get(`/sync-job-cron-trigger/${triggerId}/ticks?page_size=${PAGE_SIZE}`)
  if (next_page_token !== '') throw new Error(`the ledger has more than ${PAGE_SIZE} ticks`)
  return ticks
    .map(({ scheduled_for, outcome, reason, run_id }: Record<string, string>) => ({
      scheduledFor: scheduled_for,
      outcome,
      reason,
      runId: run_id,
    }))
    .reverse()
}
