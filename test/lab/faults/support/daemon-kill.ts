import { setTimeout as sleep } from 'node:timers/promises'
import { reportAtLeast, reportAtMost } from '../../bench/support/report.ts'
import { DaemonCluster, type NamedDaemon } from './daemon-cluster.ts'
import { seededRandom } from './seeded-random.ts'
import { auditStore, countWrites, heldAt, readStored, takenBy } from './store-audit.ts'

/** `PATCHBAY_FAULTS_KILLS` for more or fewer; 30 take about three minutes, 50 about five. */
const KILLS = Number(process.env.PATCHBAY_FAULTS_KILLS ?? 30)
const DAEMONS = 4
/** Many, because each waits out a lease after every kill that hits it. */
const ACCOUNTS = 48
const RECORDS = 2_450
const PAGE_DELAY_MS = [40, 100] as const
const BETWEEN_KILLS_MS = [500, 2_000] as const
const ASLEEP_MS = 60_000
/** Everything must be over so long after the last kill. */
const FINISH_MS = 150_000
const POLL_MS = 250
/** After the last one a run is not taken up by itself. */
const ATTEMPTS_MAX = 5
/** A daemon that holds nothing is not killed; after so long without one that does, something is wrong. */
const VICTIM_MS = 60_000

/** When a daemon died, or fell asleep. */
interface Death {
  readonly name: string
  readonly at: Date
}

/** A run at some moment. */
interface Seen {
  readonly runId: string
  readonly attempt: number
  readonly at: Date
}

/** What the accounts share. */
interface Syncing {
  readonly cluster: DaemonCluster
  /** Names of all runs. */
  readonly runs: string[]
  readonly seen: Seen[]
  readonly isOver: () => boolean
}

/** Between the two, evenly. */
function between([least, most]: readonly [number, number], random: () => number): number {
  return least + random() * (most - least)
}

/**
 * Daemons of one group die by SIGKILL in the middle of runs, and one sleeps by SIGSTOP for a minute and wakes up: the store
 * has every record exactly as the third party does, and nothing that the sleeper wrote after others had taken its runs.
 *
 * 48 accounts are synced again and again by 4 daemons; every run has records of its own, so that none covers up for another.
 */
export async function killDaemons(): Promise<void> {
  const random = seededRandom('run-kill/daemons')
  const delayMs = () => between(PAGE_DELAY_MS, random)
  await using cluster = await DaemonCluster.start({ records: RECORDS, delayMs })
  const accounts = await cluster.addAccounts(ACCOUNTS)
  const sleeper = cluster.addDaemon()
  await warmUp(cluster, accounts)
  for (let count = 0; count < DAEMONS; count++) cluster.addDaemon()

  const seen: Seen[] = []
  const runs: string[] = []
  let isOver = false
  const syncing = accounts.map((account, index) =>
    keepSyncing({ cluster, runs, seen, isOver: () => isOver }, account, `a${index}`),
  )
  const [deaths, suspension] = await Promise.all([
    killRepeatedly(cluster, sleeper, random),
    sleepThroughLeases(cluster, sleeper),
  ])
  isOver = true
  const finished = await withinMs(Promise.all(syncing), FINISH_MS)
  const seconds = await secondsUntilTaken(cluster, deaths, seen)
  const asleep = (await secondsUntilTaken(cluster, [suspension], seen)).length
  const stored = (await readStored(cluster.store, RECORDS)).filter(({ run }) => runs.includes(run))
  const whole = stored.filter(({ records, isExact }) => records === RECORDS && isExact)
  const writes = await countWrites(cluster.store)
  reportAtLeast('run-kill/daemons/kills', KILLS, 'daemons', 30)
  reportAtLeast('run-kill/daemons/interrupted', seconds.length + asleep, 'runs', 50)
  reportAtMost('run-kill/daemons/unfinished', finished === undefined ? ACCOUNTS : 0, 'accounts', 0)
  reportAtMost('run-kill/daemons/not-exact', runs.length - whole.length, 'runs', 0)
  reportAtMost('run-kill/daemons/re-leased', Math.max(...seconds), 's', 45)
  reportAtLeast('run-kill/daemons/slept-on', asleep, 'runs', 1)
  reportAtLeast('run-kill/daemons/writes-seen', writes.all, 'pages', runs.length)
  reportAtMost('run-kill/daemons/writes-by-others', writes.foreign, 'pages', 0)
}

/** One run, so that the tables are there before they are watched. */
async function warmUp(cluster: DaemonCluster, [account = '']: readonly string[]): Promise<void> {
  const id = await cluster.createRun(account, 'warm-up')
  while ((await cluster.look(id)).status !== 'completed') await sleep(POLL_MS)
  await auditStore(cluster.store)
}

/** Syncs an account again and again, looking at every run all the time; one that has failed for good is retried. */
async function keepSyncing({ cluster, runs, seen, isOver }: Syncing, accountId: string, name: string): Promise<void> {
  for (let round = 0; !isOver(); round++) {
    const run = `${name}.${round}`
    const runId = await cluster.createRun(accountId, run)
    runs.push(run)
    for (let status = ''; status !== 'completed'; await sleep(POLL_MS)) {
      const look = await cluster.look(runId)
      seen.push({ runId, attempt: look.attempt, at: new Date() })
      status = look.status
      if (status === 'failed') await cluster.retryRun(runId)
    }
  }
}

/** Kills daemons that are in the middle of runs, but for `spared`, and replaces them. */
async function killRepeatedly(
  cluster: DaemonCluster,
  spared: NamedDaemon,
  random: () => number,
): Promise<readonly Death[]> {
  const deaths: Death[] = []
  while (deaths.length < KILLS) {
    await sleep(between(BETWEEN_KILLS_MS, random))
    const victim = await findBusy(cluster, spared, random)
    deaths.push({ name: victim.name, at: await cluster.kill(victim) })
    cluster.addDaemon()
  }
  return deaths
}

async function findBusy(cluster: DaemonCluster, spared: NamedDaemon, random: () => number): Promise<NamedDaemon> {
  for (const end = Date.now() + VICTIM_MS; Date.now() < end; await sleep(POLL_MS)) {
    const mortal = cluster.daemons.filter((daemon) => daemon !== spared)
    const candidate = mortal[Math.floor(random() * mortal.length)]
    if (candidate !== undefined && (await isBusy(cluster, candidate))) return candidate
  }
  throw new Error(`no daemon holds a run: ${cluster.daemons.map(({ process }) => process.output).join('\n')}`)
}

async function isBusy(cluster: DaemonCluster, { name }: NamedDaemon): Promise<boolean> {
  const looks = await Promise.all((await takenBy(cluster.store, name)).map((id) => cluster.look(id)))
  return looks.some(({ status }) => status === 'running')
}

/** Seconds from each death until another daemon had claimed each run, unless that was the last attempt. */
async function secondsUntilTaken(
  { store }: DaemonCluster,
  deaths: readonly Death[],
  seen: readonly Seen[],
): Promise<readonly number[]> {
  const looks = Map.groupBy(seen, ({ runId }) => runId)
  const each = deaths.map(async ({ name, at }) => {
    const held = (await heldAt(store, name, at)).filter(({ attempt }) => attempt < ATTEMPTS_MAX)
    return held.flatMap(({ runId, attempt }) => {
      const next = looks.get(runId)?.find((look) => look.at > at && look.attempt > attempt)
      return next === undefined ? [] : [(next.at.getTime() - at.getTime()) / 1_000]
    })
  })
  return (await Promise.all(each)).flat()
}

/** Stops a daemon in the middle of runs for so long that others have taken them over. */
async function sleepThroughLeases(cluster: DaemonCluster, sleeper: NamedDaemon): Promise<Death> {
  while (!(await isBusy(cluster, sleeper))) await sleep(POLL_MS)
  sleeper.process.child.kill('SIGSTOP')
  const at = new Date()
  await sleep(ASLEEP_MS)
  sleeper.process.child.kill('SIGCONT')
  return { name: sleeper.name, at }
}

async function withinMs<Result>(work: Promise<Result>, ms: number): Promise<Result | undefined> {
  const late = new AbortController()
  const limit = sleep(ms, undefined, { signal: late.signal }).catch(() => undefined)
  const result = await Promise.race([work, limit])
  late.abort()
  return result
}
