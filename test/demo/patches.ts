import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import type { JsonObject } from '../../src/base/index.ts'
import { createClient, type Protocol } from '../support/client.ts'
import type { RunningProduct } from '../support/product.ts'
import type { JsonAnswer } from '../support/rest.ts'
import { readLedger, type Tick } from './ledger.ts'
import { countRecords, type ReceivedRun, type ReceivedRuns } from './received-runs.ts'
import { counted, printCheck, printFact, printSection, timeOf } from './report.ts'
import type { DemoSession } from './session.ts'
import { type DemoSetup, PATHS } from './setup.ts'

/** A change of the trigger and what it must bring about. */
interface TriggerPatch {
  readonly wire: Protocol
  readonly call: string
  readonly title: string
  readonly change: JsonObject
  /** From the first new tick on. */
  readonly gapSeconds: number
  readonly path: string
  /** Runs to wait for; two show a rhythm. */
  readonly runs: number
}

/** What a patch stands on. */
export interface PatchDeps {
  readonly session: DemoSession
  readonly product: RunningProduct
  readonly setup: DemoSetup
  readonly received: ReceivedRuns
}

/** Patches the trigger over each protocol, each time waiting for the runs that show it; returns what did not hold. */
export async function patchOverEveryProtocol(deps: PatchDeps): Promise<readonly string[]> {
  const problems: string[] = []
  for (const patch of patchesOf(deps.setup)) {
    printSection(`${patch.title}, by PATCH over ${NAMES[patch.wire]}`)
    const before = await deps.setup.get(`/sync-job-cron-trigger/${deps.setup.triggerId}`)
    const answer = await send(deps, patch)
    printFact('call', patch.call)
    printFact('before', describeTrigger(deps.setup, before))
    printFact('answer', describeTrigger(deps.setup, answer))
    if (!(await verifyEffect(deps, patch, answer))) problems.push(`${patch.title} over ${NAMES[patch.wire]}`)
  }
  return problems
}

const NAMES: Readonly<Record<Protocol, string>> = { grpc: 'gRPC', connect: 'Connect', rest: 'REST' }

function patchesOf({ triggerId, webhookIds }: DemoSetup): readonly TriggerPatch[] {
  const rpc = 'patchbay.v1.SyncJobCronTriggerService/UpdateSyncJobCronTrigger'
  return [
    {
      wire: 'grpc',
      call: rpc,
      title: 'Every 5 seconds',
      change: { cron_expression: '*/5 * * * * *' },
      gapSeconds: 5,
      path: PATHS.inbox,
      runs: 2,
    },
    {
      wire: 'connect',
      call: `POST /${rpc}`,
      title: 'To another webhook',
      change: { webhook_id: webhookIds.archive },
      gapSeconds: 5,
      path: PATHS.archive,
      runs: 1,
    },
    {
      wire: 'rest',
      call: `PATCH /sync-job-cron-trigger/${triggerId}`,
      title: 'Every 2 seconds',
      change: { cron_expression: '*/2 * * * * *' },
      gapSeconds: 2,
      path: PATHS.archive,
      runs: 2,
    },
  ]
}

async function send({ product, setup: chain }: PatchDeps, { wire, change }: TriggerPatch): Promise<JsonAnswer> {
  const client = createClient(wire, product.url, { token: product.bootstrap.environment_token })
  try {
    const { updateSyncJobCronTrigger } = SyncJobCronTriggerService.method
    return (await client.ok(updateSyncJobCronTrigger, { id: chain.triggerId, ...change })) as unknown as JsonAnswer
  } finally {
    client.close()
  }
}

/** Waits for the runs of the changed trigger, prints them beside the ledger, and tells whether both are as they must be. */
async function verifyEffect(
  { session: story, setup: chain, received: journal }: PatchDeps,
  patch: TriggerPatch,
  answer: JsonAnswer,
): Promise<boolean> {
  const from = await firstNewTick(story, chain, String(answer.next_run_at))
  const what = `${counted(patch.runs, 'run')} from ${timeOf(from)} on to ${patch.path}`
  const runs = await story.waitFor(what, () => journal.completedFrom(from, patch.runs))
  for (const run of runs) printFact(`run ${run.number}`, describeRun(run))
  const recorded = await Promise.all(runs.map(({ id }) => chain.get(`/sync-job-run/${id}`)))
  const ledger = (await readLedger(chain)).filter((tick) => Date.parse(tick.scheduledFor) >= Date.parse(from))
  printFact('ledger', ledger.map(describeTick).join(', '))

  const hasPath = runs.every(({ path }) => path === patch.path)
  const hasDestination = recorded.every(({ webhook_id }) => nameOf(chain, webhook_id) === patch.path)
  const expected = Array.from({ length: patch.runs }, (_, n) => Date.parse(from) + n * patch.gapSeconds * 1000)
  const hasRhythm = expected.every((at, n) => Date.parse(ledger[n]?.scheduledFor ?? '') === at)
  const isHeld = hasPath && hasDestination && hasRhythm
  const rhythm = patch.runs > 1 ? `a tick every ${patch.gapSeconds} s ` : ''
  printCheck('effect', `${rhythm}from ${timeOf(from)} on, to ${patch.path}`, isHeld)
  return isHeld
}

/** The first tick that only the changed trigger makes: one that was due when the change came belongs to what was before. */
async function firstNewTick(story: DemoSession, { get, triggerId }: DemoSetup, nextRunAt: string): Promise<string> {
  if (Date.parse(nextRunAt) > Date.now()) return nextRunAt
  return await story.pollFor('the tick that was due to fire', async () => {
    const { next_run_at } = await get(`/sync-job-cron-trigger/${triggerId}`)
    return Date.parse(next_run_at) > Date.parse(nextRunAt) ? String(next_run_at) : undefined
  })
}

function describeTrigger(chain: DemoSetup, trigger: JsonAnswer): string {
  return `${trigger.cron_expression.padEnd(16)} next at ${timeOf(trigger.next_run_at)}, to ${nameOf(chain, trigger.webhook_id)}`
}

/** One line about a run that arrived whole. */
export function describeRun(run: ReceivedRun): string {
  const records = `${counted(countRecords(run, 'repositories'), 'repository')}, ${counted(countRecords(run, 'issues'), 'issue')}`
  return `of ${timeOf(run.scheduledFor)}: ${records} in ${counted(run.deliveries, 'signed delivery')} to ${run.path}`
}

function describeTick({ scheduledFor, outcome, reason }: Tick): string {
  return `${timeOf(scheduledFor)} ${outcome}${reason === undefined ? '' : ` (${reason})`}`
}

function nameOf({ webhookIds }: DemoSetup, webhookId: string): string {
  return webhookId === webhookIds.inbox ? PATHS.inbox : webhookId === webhookIds.archive ? PATHS.archive : webhookId
}
