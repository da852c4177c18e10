import { SyncJobCronTriggerService } from '../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import type { JsonObject } from '../../../src/foundation/json/index.ts'
import { createClient, type Protocol } from '../../support/client.ts'
import type { RunningProduct } from '../../support/product.ts'
import type { JsonAnswer } from '../../support/rest.ts'
import { readLedger, type Tick } from './ledger.ts'
import { countRecords, type ReceivedRun, type ReceivedRuns } from './received-runs.ts'
import { counted, printCheck, printFact, printSection, timeOf } from './report.ts'
import type { DemoSession } from './session.ts'
import { type DemoSetup, PATHS } from './setup.ts'

/** A change of the trigger and its expected effect. */
interface TriggerPatch {
  readonly wire: Protocol
  readonly call: string
  readonly title: string
  readonly change: JsonObject
  /** Between ticks, from the first new one on. */
  readonly gapSeconds: number
  readonly path: string
  /** Runs to wait for; two show the interval. */
  readonly runs: number
}

/** What patches need. */
export interface PatchDeps {
  readonly session: DemoSession
  readonly product: RunningProduct
  readonly setup: DemoSetup
  readonly received: ReceivedRuns
}

/** Patches the trigger over each protocol and waits for runs that show the effect. @returns the names of failed checks */
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

async function send({ product, setup }: PatchDeps, { wire, change }: TriggerPatch): Promise<JsonAnswer> {
  const client = createClient(wire, product.url, { token: product.bootstrap.environment_token })
  try {
    const { updateSyncJobCronTrigger } = SyncJobCronTriggerService.method
    return (await client.ok(updateSyncJobCronTrigger, { id: setup.triggerId, ...change })) as unknown as JsonAnswer
  } finally {
    client.close()
  }
}

/** Waits for the runs of the changed trigger, prints them with the ledger, and checks both. */
async function verifyEffect(
  { session, setup, received }: PatchDeps,
  patch: TriggerPatch,
  answer: JsonAnswer,
): Promise<boolean> {
  const from = await firstNewTick(session, setup, String(answer.next_run_at))
  const what = `${counted(patch.runs, 'run')} from ${timeOf(from)} on to ${patch.path}`
  const runs = await session.waitFor(what, () => received.completedFrom(from, patch.runs))
  for (const run of runs) printFact(`run ${run.number}`, describeRun(run))
  const recorded = await Promise.all(runs.map(({ id }) => setup.get(`/sync-job-run/${id}`)))
  const ledger = (await readLedger(setup)).filter((tick) => Date.parse(tick.scheduledFor) >= Date.parse(from))
  printFact('ledger', ledger.map(describeTick).join(', '))

  const hasPath = runs.every(({ path }) => path === patch.path)
  const hasDestination = recorded.every(({ webhook_id }) => nameOf(setup, webhook_id) === patch.path)
  const expected = Array.from({ length: patch.runs }, (_, n) => Date.parse(from) + n * patch.gapSeconds * 1000)
  const hasInterval = expected.every((at, n) => Date.parse(ledger[n]?.scheduledFor ?? '') === at)
  const isCorrect = hasPath && hasDestination && hasInterval
  const interval = patch.runs > 1 ? `a tick every ${patch.gapSeconds} s ` : ''
  printCheck('effect', `${interval}from ${timeOf(from)} on, to ${patch.path}`, isCorrect)
  return isCorrect
}

/** The first tick of the changed trigger: a tick that was due before the change still belongs to the old schedule. */
async function firstNewTick(session: DemoSession, { get, triggerId }: DemoSetup, nextRunAt: string): Promise<string> {
  if (Date.parse(nextRunAt) > Date.now()) return nextRunAt
  return await session.pollFor('the tick that was due to fire', async () => {
    const { next_run_at } = await get(`/sync-job-cron-trigger/${triggerId}`)
    return Date.parse(next_run_at) > Date.parse(nextRunAt) ? String(next_run_at) : undefined
  })
}

function describeTrigger(setup: DemoSetup, trigger: JsonAnswer): string {
  return `${trigger.cron_expression.padEnd(16)} next at ${timeOf(trigger.next_run_at)}, to ${nameOf(setup, trigger.webhook_id)}`
}

/** One line about a completed run. */
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
