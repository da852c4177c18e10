/**
 * Workers die by SIGKILL in the middle of runs, and one sleeps by SIGSTOP for a minute and wakes up; receivers get
 * everything, and the sleeper writes nothing.
 *
 * 16 accounts are synced again and again by 4 workers, a random one of which is killed every few seconds and replaced, 50
 * times (`PATCHBAY_FAULTS_KILLS` for more); about five minutes. Then the same is done to daemons and what they store.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { killDaemons } from './support/daemon-kill.ts'
import { checkDeliveries } from './support/delivery-checker.ts'
import { startPageEndpoints } from './support/page-endpoints.ts'
import { RunCluster, type WorkerProcess } from './support/run-cluster.ts'
import { countForeignWrites, countWrites, readTakenLeases } from './support/write-audit.ts'

const KILLS = Number(process.env.PATCHBAY_FAULTS_KILLS ?? 50)
const WORKERS = 4
const ACCOUNTS = 16
/** 25 pages of a run take about three seconds: kills hit most runs at some page, few of them five times. */
const LIST = { records: 2_450, delayMs: [40, 100], acceptMs: [20, 60] } as const
const BETWEEN_KILLS_MS = [500, 2_000] as const
const ASLEEP_MS = 60_000
/** Everything must be over so long after the last kill. */
const FINISH_MS = 180_000
const POLL_MS = 250

interface Killed {
  readonly runId: string
  readonly at: Date
}

/** Syncs an account again and again; a run that has failed for good is retried. */
async function keepSyncing(cluster: RunCluster, accountId: string, runs: string[], isOver: () => boolean) {
  let retried = 0
  while (!isOver()) {
    const id = await cluster.createRun(accountId)
    runs.push(id)
    for (let status: string | undefined; status !== 'completed'; await sleep(POLL_MS)) {
      status = await cluster.statusOf(id)
      if (status !== 'failed') continue
      retried++
      await cluster.retryRun(id)
    }
  }
  return retried
}

/** Kills workers that are in the middle of runs, but for `spared`, and replaces them; returns what they held. */
async function killRepeatedly(cluster: RunCluster, spared: WorkerProcess): Promise<readonly Killed[]> {
  const killed: Killed[] = []
  for (let kills = 0; kills < KILLS; ) {
    const [least, most] = BETWEEN_KILLS_MS
    await sleep(least + Math.random() * (most - least))
    const mortal = cluster.workers.filter((worker) => worker !== spared)
    const victim = mortal[Math.floor(Math.random() * mortal.length)]
    if (victim === undefined || (await cluster.heldBy(victim)).length === 0) continue
    const { at, held } = await cluster.kill(victim)
    if (held.length > 0) kills++
    killed.push(...held.filter(({ attempt }) => attempt < 5).map(({ id }) => ({ runId: id, at })))
    await cluster.addWorker()
  }
  return killed
}

/** Stops a worker in the middle of runs for so long that others have taken them over; returns how many it held. */
async function sleepThroughLeases(cluster: RunCluster, sleeper: WorkerProcess): Promise<number> {
  while ((await cluster.heldBy(sleeper)).length === 0) await sleep(POLL_MS)
  sleeper.child.kill('SIGSTOP')
  const held = await cluster.heldBy(sleeper)
  await sleep(ASLEEP_MS)
  sleeper.child.kill('SIGCONT')
  return held.length
}

/** Seconds from each kill until another holder had the run. */
async function secondsUntilTaken(cluster: RunCluster, killed: readonly Killed[]): Promise<readonly number[]> {
  const taken = Map.groupBy(await readTakenLeases(cluster.database), ({ runId }) => runId)
  return killed.map(({ runId, at }) => {
    const next = taken.get(runId)?.find((lease) => lease.at > at)
    return next === undefined ? Number.POSITIVE_INFINITY : (next.at.getTime() - at.getTime()) / 1_000
  })
}

async function workerKills(): Promise<void> {
  await using endpoints = await startPageEndpoints(LIST)
  await using cluster = await RunCluster.start()
  const sleeper = await cluster.addWorker()
  await Promise.all(Array.from({ length: WORKERS }, () => cluster.addWorker()))
  await cluster.seed(ACCOUNTS, endpoints.upstreamUrl, endpoints.receiverUrl)
  const runs: string[] = []
  let isOver = false
  const syncing = cluster.accountIds.map((id) => keepSyncing(cluster, id, runs, () => isOver))
  const [killed, asleep] = await Promise.all([killRepeatedly(cluster, sleeper), sleepThroughLeases(cluster, sleeper)])
  isOver = true
  const finished = Promise.all(syncing)
  const late = new AbortController()
  await Promise.race([finished, sleep(FINISH_MS, undefined, { signal: late.signal, ref: false })])
  late.abort()
  const statuses = await Promise.all(runs.map((id) => cluster.statusOf(id)))
  const verdict = checkDeliveries(new Map(runs.map((id) => [id, LIST.records])), endpoints.pages)
  const seconds = await secondsUntilTaken(cluster, killed)
  reportAtLeast('run-kill/kills', KILLS, 'workers', 50)
  reportAtLeast('run-kill/interrupted', killed.length + asleep, 'runs', 50)
  reportAtMost('run-kill/unfinished', statuses.filter((status) => status !== 'completed').length, 'runs', 0)
  reportAtLeast('run-kill/records', verdict.records, 'records', runs.length * LIST.records)
  reportAtMost('run-kill/missing', verdict.missing, 'records', 0)
  reportAtMost('run-kill/repeated', verdict.repeated, 'pages', killed.length + asleep)
  reportAtMost('run-kill/changed', verdict.changed, 'pages', 0)
  reportAtMost('run-kill/early', verdict.early, 'pages', 0)
  // The sleeper's page in flight may arrive when it wakes up, long after its run went on.
  reportAtMost('run-kill/behind', verdict.behind, 'pages', asleep)
  reportAtMost('run-kill/re-leased', Math.max(...seconds), 's', 45)
  reportAtLeast('run-kill/writes-seen', await countWrites(cluster.database), 'writes', runs.length)
  reportAtMost('run-kill/writes-by-others', await countForeignWrites(cluster.database), 'writes', 0)
}

await workerKills()
await killDaemons()
