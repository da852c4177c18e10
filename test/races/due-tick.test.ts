import { describe, expect, it } from 'vitest'
import { execute } from '../../src/foundation/database/index.ts'
import { RunQueue, triggerCascade } from '../../src/sync/runs/index.ts'
import { deleteTrigger, pauseTrigger, updateTrigger } from '../../src/sync/schedules/index.ts'
import { caseCount } from '../support/case-count.ts'
import { clockedDatabase } from '../support/database.ts'
import { fastClock } from '../support/fast-clock.ts'
import { interleavings, type Lane, type Operation } from '../support/interleavings.ts'
import { createTenant } from '../support/tenant.ts'
import { clearTriggers, TriggerFixture } from '../unit/sync/schedules/trigger-fixture.ts'

const { target, database, clock } = await clockedDatabase()
const { expectAlways } = interleavings(target, fastClock())
const alone: Lane = { database, clock: fastClock(), step: async () => {} }
const tenant = await createTenant(database)
const { environmentId } = tenant
const [accountId = ''] = tenant.accountIds
const at = new TriggerFixture(database, tenant, clock)

/** A trigger with a tick that is due, and one that is not. */
async function arrange(): Promise<string> {
  await clearTriggers(database)
  await execute(database.pool, "update integrated_account set status = 'active'")
  await clock.set('2026-11-05T12:00:05Z')
  const { id } = await at.create()
  await clock.set('2026-11-05T12:00:15Z')
  return id
}

type Given = (id: string) => Operation

const depsOf = ({ database }: Lane) => ({
  ...at.deps,
  database,
  queue: new RunQueue({ database, random: () => 0.5 }),
})

const fire: Given = () => (lane) => at.fire({ database: lane.database, queue: depsOf(lane).queue })

const CHANGES: Readonly<Record<string, Given>> = {
  'another worker': fire,
  'a PATCH of the expression': (id) => (lane) =>
    updateTrigger(depsOf(lane), environmentId, id, { cronExpression: '*/7 * * * * *' }),
  'a PATCH of the destination': (id) => (lane) =>
    updateTrigger(depsOf(lane), environmentId, id, { destination: { kind: 'daemon', groupKey: 'g' } }),
  'a pause': (id) => (lane) => lane.database.transaction((tx) => pauseTrigger(depsOf(lane), tx, environmentId, id)),
  'its deletion': (id) => (lane) => lane.database.transaction((tx) => deleteTrigger(tx, environmentId, id, undefined)),
  'the deletion of the triggers of its account': () => (lane) =>
    lane.database.transaction((tx) => triggerCascade.deleteByAccount(tx, environmentId, accountId)),
  'a status in which the account may not be called': () => (lane) =>
    execute(lane.database.pool, "update integrated_account set status = 'needs_reauth'"),
}

/** The runs and the schedule once what is due by now has fired. */
async function resultOf(id: string): Promise<string> {
  await at.fire()
  const runs = (await at.runsOf(id)).map(({ id: _id, ...run }) => run)
  return JSON.stringify({ runs, schedule: await at.scheduleOf(id) })
}

async function serial(...order: readonly Given[]): Promise<string> {
  const id = await arrange()
  for (const each of order) await each(id)(alone)
  return await resultOf(id)
}

describe('a due tick', () => {
  it.each(Object.entries(CHANGES).slice(0, caseCount(2, 7)))(
    'that fires beside %s has one run, as if one came after the other',
    async (_, change) => {
      const allowed = [await serial(fire, change), await serial(change, fire)]
      await expectAlways<string>({
        arrange,
        operations: (id) => [fire(id), change(id)],
        async check(id, results) {
          expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
          expect(allowed).toContain(await resultOf(id))
        },
      })
    },
  )
})
