import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { SyncJobCronTriggerService } from '../../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { runCommand } from '../../../../src/cli/commands/run-command.ts'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { Outcome } from '../../../../src/foundation/queue/index.ts'
import { type ResourceStats, RunQueue } from '../../../../src/sync/runs/index.ts'
import { daemonQueueGroup } from '../../../../src/sync/runs/run.ts'
import { startTestApp } from '../../../support/app.ts'
import { keepPrinted } from '../../../support/printed-output.ts'
import { createApiEnvironment, NEVER_FIRES, seedTenant } from '../../../support/seeded-tenant.ts'

const app = await startTestApp()
const world = await seedTenant(app, app.first)
const client = app.client('rest')
const queue = new RunQueue({ database: app.database, random: () => 0.5 })
const STATS: ResourceStats = {
  resource: 'repos',
  method: 'list',
  pages: 3,
  fetched: 1_300,
  delivered: 1_200,
  failed: 0,
  complete: false,
  claimedTotal: 2_600,
}
const DIR = mkdtempSync(join(tmpdir(), 'patchbay-run-cli-'))
afterAll(() => rmSync(DIR, { recursive: true }))

const printed = keepPrinted()

const patchbay = (...args: string[]) =>
  runCommand(['run', ...args], { PATCHBAY_TOKEN: world.environmentToken, PATCHBAY_PUBLIC_URL: app.url })
const isPrinted = (text: string | RegExp) => expect.poll(() => printed.text).toMatch(text)

/** A run, or a trigger of one, in a group of its own; and how to claim the run. */
async function inGroup() {
  const group = newId()
  const plan = { sync_job_id: world.syncJobId, integrated_account_id: world.integratedAccountId }
  return {
    createRun: async () =>
      (await client.ok(SyncJobRunService.method.createSyncJobRun, { ...plan, daemon_group_key: group })).id,
    createTrigger: async () => {
      const request = { ...plan, daemon_group_key: group, cron_expression: NEVER_FIRES }
      return (await client.ok(SyncJobCronTriggerService.method.createSyncJobCronTrigger, request)).id
    },
    claim: async () => {
      const [lease] = await queue.claim({ group: daemonQueueGroup(world.environmentId, group), holder: 'd', limit: 1 })
      if (lease === undefined) throw new Error('nothing to claim')
      return lease
    },
  }
}

describe('patchbay run TRIGGER', () => {
  it('starts a run and prints its id', async () => {
    const { createTrigger, claim } = await inGroup()
    expect(await patchbay(await createTrigger())).toBe(0)
    const lease = await claim()
    expect(printed.text).toBe(`run ${lease.id} created\n`)
    await queue.settle([{ ...lease, outcome: { kind: 'stopped' } }])
  })

  it('follows the run with --follow', async () => {
    const { createTrigger, claim } = await inGroup()
    const exit = patchbay(await createTrigger(), '--follow')
    await isPrinted(/created/)
    const lease = await claim()
    await queue.settle([{ ...lease, outcome: { kind: 'completed' } }])
    expect(await exit).toBe(0)
    expect(printed.text).toMatch(new RegExp(`run ${lease.id} completed after \\d+ s`))
  })

  it.each([['--full'], ['--full', '--follow']])('reads everything with %s %s', async (...flags) => {
    const { createTrigger, claim } = await inGroup()
    const exit = patchbay(await createTrigger(), ...flags.filter((flag) => flag !== undefined))
    await isPrinted(/created/)
    const lease = await claim()
    await queue.settle([{ ...lease, outcome: { kind: 'completed' } }])
    expect(await exit).toBe(0)
    expect(await client.ok(SyncJobRunService.method.getSyncJobRun, { id: lease.id })).toMatchObject({
      ignore_previous_run: true,
    })
  })

  it.each<[string, string[], string]>([
    ['a run, with --full', [world.syncJobRunId, '--full', '--follow'], 'there is no trigger'],
    ['nothing at all', [newId()], 'there is no trigger'],
    ['neither a trigger nor a run', [newId(), '--follow'], 'there is neither a run nor a trigger'],
    ['a run', [world.syncJobRunId], 'with --follow it may be a run'],
  ])('says so when the id is that of %s', async (_, args, text) => {
    expect(await patchbay(...args)).toBe(1)
    expect(printed.text).toContain(text)
  })

  it('answers for a run of another environment as for an unknown one', async () => {
    const { environmentToken } = await createApiEnvironment(app, world.teamToken)
    expect(await patchbay(world.syncJobRunId, '--follow', '--token', environmentToken)).toBe(1)
    expect(printed.text).toContain('there is neither a run nor a trigger')
  })
})

describe('patchbay run --follow RUN', () => {
  it.each<[Outcome, number, string | RegExp]>([
    [{ kind: 'completed' }, 0, /completed after \d+ s: 1 300 records read, 1 200 delivered/],
    [{ kind: 'failed', error: { reason: 'UPSTREAM_ERROR', message: 'it broke' } }, 1, '\nUPSTREAM_ERROR: it broke\n'],
    [{ kind: 'partially_completed' }, 3, '\nincomplete, read again by the next run: repos\n'],
    [{ kind: 'stopped' }, 3, /stopped after \d+ s/],
  ])('shows its progress as lines, and exits by how it ends: %j', async (outcome, code, ending) => {
    const { createRun, claim } = await inGroup()
    const id = await createRun()
    const exit = patchbay('--follow', id)
    await isPrinted(/created: no daemon of the group/)
    const lease = await claim()
    await queue.save(lease, {}, [STATS])
    await isPrinted(/repos: 1 300 of 2 600 read, 1 200 delivered, 3 pages\n/)
    await queue.settle([{ ...lease, outcome }])
    expect(await exit).toBe(code)
    expect(printed.text).toMatch(ending)
  })

  it('leaves the run running at Ctrl-C, and says so', async () => {
    const { createRun, claim } = await inGroup()
    const id = await createRun()
    const exit = patchbay('--follow', id)
    await isPrinted(/created/)
    process.emit('SIGINT')
    expect(await exit).toBe(130)
    expect(printed.text).toContain(`the run continues. Follow again: patchbay run --follow ${id}`)
    expect((await claim()).id).toBe(id)
  })
})

describe('the server that patchbay run calls', () => {
  const code = (args: string[], environment: NodeJS.ProcessEnv) => runCommand(['run', ...args], environment)
  const bootstrap = { PATCHBAY_DATA_DIR: DIR }
  writeFileSync(join(DIR, 'bootstrap.json'), JSON.stringify({ environment_token: world.environmentToken }))

  it.each<[string, string[]]>([
    ['no id', []],
    ['two ids', [newId(), newId()]],
    ['not an id', ['all']],
    ['an unknown option', [newId(), '--wait']],
    ['an invalid address', [newId(), '--url', 'here', '--token', 'x']],
    ['an environment that is not an id', [newId(), '--environment', 'production', '--token', 'x']],
  ])('wrong usage: %s', async (_, args) => {
    expect(await code(args, {})).toBe(2)
  })

  it('is the one configured here, with the token of its first start', async () => {
    expect(await code([newId()], { ...bootstrap, PATCHBAY_PUBLIC_URL: app.url })).toBe(1)
    expect(printed.text).toContain('there is no trigger')
  })

  it('does not get the token of the first start here when it is another server', async () => {
    expect(await code([newId(), '--url', app.url], bootstrap)).toBe(2)
  })

  it('takes a token of a team together with an environment', async () => {
    const args = [world.syncJobCronTriggerId, '--url', app.url, '--token', world.teamToken]
    expect(await code(args, {})).toBe(1)
    expect(await code([...args, '--environment', world.environmentId], {})).toBe(0)
  })

  it('may reject the token, or be unavailable', async () => {
    expect(await code([newId(), '--follow', '--url', app.url, '--token', 'x'], {})).toBe(1)
    expect(printed.text).toContain('token is not valid')
    expect(await code([newId(), '--follow', '--url', 'http://127.0.0.1:1', '--token', 'x'], {})).toBe(1)
    expect(printed.text).toContain('the server is unavailable: connect ECONNREFUSED 127.0.0.1:1')
  })
})
