import { expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { query } from '../../../../src/foundation/database/index.ts'
import {
  advancePreviousRuns,
  findPreviousRunDates,
  PREVIOUS_RUNS_MAX,
} from '../../../../src/sync/runs/sql/previous-run.ts'
import { someCases } from '../../../support/case-count.ts'
import { testDatabase } from '../../../support/database.ts'

const { database } = await testDatabase()
const tx = database.pool

/** The resources of a trigger, or of runs without one. */
function subject(triggerId: string | null) {
  const ids = { environmentId: newId(), syncJobId: newId(), integratedAccountId: newId(), triggerId }
  const key = (n: number) => ({ ...ids, resourceKey: `key-${n}` })
  return {
    key,
    advance: (from: number, count: number, startedAt: Date) =>
      advancePreviousRuns(
        tx,
        Array.from({ length: count }, (_, n) => ({ ...key(from + n), startedAt })),
      ),
    count: async () =>
      (await query(tx, 'select from previous_run where sync_job_id = :syncJobId', { syncJobId: ids.syncJobId })).length,
  }
}

const SUBJECTS: readonly (readonly [what: string, triggerId: string | null])[] = [
  ['a trigger whose arguments change with each run', newId()],
  ['runs without a trigger', null],
]

it.each(someCases(SUBJECTS, 1))('of %s the states that moved last are kept', async (_, triggerId) => {
  const { key, advance, count } = subject(triggerId)
  const other = subject(triggerId)
  await other.advance(0, 5, new Date('2026-01-01T00:00:00Z'))
  await advance(0, 1_000, new Date('2026-01-01T00:00:00Z'))
  await advance(1_000, 1_000, new Date('2026-01-02T00:00:00Z'))
  await advance(0, 10, new Date('2026-01-03T00:00:00Z'))
  expect(await count()).toBe(PREVIOUS_RUNS_MAX)
  await advance(2_000, 500, new Date('2026-01-04T00:00:00Z'))
  await advance(2_500, 1, new Date('2026-01-05T00:00:00Z'))
  expect(await count()).toBeLessThanOrEqual(PREVIOUS_RUNS_MAX + 1)
  const dates = await findPreviousRunDates(tx, [key(0), key(1_500), key(2_499), key(2_500)])
  expect(dates.map((date) => date !== null)).toEqual([true, true, true, true])
  expect(await other.count()).toBe(5)
})
