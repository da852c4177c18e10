import { beforeEach, describe, expect, it } from 'vitest'
import { execute } from '../../../../src/foundation/database/index.ts'
import { pauseTrigger, startHintedRuns } from '../../../../src/sync/schedules/index.ts'
import { testDatabase } from '../../../support/database.ts'
import { createTenant } from '../../../support/tenant.ts'
import { clearTriggers, TriggerFixture } from './trigger-fixture.ts'

const { database } = await testDatabase()
const fixture = async () => new TriggerFixture(database, await createTenant(database, 2), { now: () => new Date() })
beforeEach(() => clearTriggers(database))

/** A hint about a resource of the first account. */
async function hint(at: TriggerFixture, resource = 'repos') {
  const { environmentId, accountIds } = at.tenant
  const of = { environmentId, integratedAccountId: accountIds[0] ?? '', resource }
  return await database.transaction((tx) => startHintedRuns(at.deps, tx, of))
}

describe('a hint of the third party', () => {
  it('runs every trigger of the account that reads the resource, and no other', async () => {
    const at = await fixture()
    const ofJob = await at.create()
    const own = await at.create({ resources: [{ resource: 'issues', method: 'list' }] })
    await at.create({ account: 1 })
    expect(await hint(at)).toMatchObject([{ triggerId: ofJob.id, kind: 'started' }])
    expect(await hint(at, 'issues')).toMatchObject([{ triggerId: own.id, kind: 'started' }])
    expect(await hint(at, 'commits')).toEqual([])
  })

  it('starts no second run while one waits that has read nothing, but one beside a run that has begun', async () => {
    const at = await fixture()
    const { id } = await at.create()
    const [first] = await hint(at)
    expect(await hint(at)).toEqual([{ triggerId: id, kind: 'waiting' }])
    const [claimed] = await at.claim()
    expect(claimed).toMatchObject({ id: first?.kind === 'started' && first.runId })
    expect(await hint(at)).toMatchObject([{ kind: 'started' }])
  })

  it('starts a run when the one that waits has begun before and may have read the resource', async () => {
    const at = await fixture()
    await at.create()
    await hint(at)
    const [claimed] = await at.claim()
    if (claimed === undefined) throw new Error('nothing was claimed')
    await at.queue.settle([{ ...claimed, outcome: { kind: 'released' } }])
    expect(await hint(at)).toMatchObject([{ kind: 'started' }])
  })

  it('leaves a paused trigger alone, and says why a run cannot start', async () => {
    const at = await fixture()
    const { environmentId } = at.tenant
    const paused = await at.create()
    await database.transaction((tx) => pauseTrigger(at.deps, tx, environmentId, paused.id))
    expect(await hint(at)).toEqual([])
    const { id } = await at.create()
    await execute(database.pool, `update integrated_account set status = 'needs_reauth'`)
    expect(await hint(at)).toMatchObject([{ triggerId: id, kind: 'failed', error: { reason: 'ACCOUNT_NOT_ACTIVE' } }])
    expect(await at.runsOf(id)).toEqual([])
  })
})
