import pg from 'pg'
import { startEmbeddedServer } from '../../src/database/index.ts'
import { DaemonProcess } from '../daemon-runner/support/daemon-process.ts'
import { type RunningProduct, removeDataDir, temporaryDataDir } from '../support/product.ts'
import type { JsonAnswer } from '../support/rest.ts'
import type { GitHub } from './github.ts'
import { counted, printCheck, printFact } from './report.ts'
import type { DemoSession } from './session.ts'
import { connectAccount, type DemoSetup, PAGE_SIZE } from './setup.ts'

const GROUP = 'warehouse'
/** Enough for a run of some seconds on pages of three. */
const ISSUES = 1_200
/** The share of them after which the first daemon is killed. */
const KILLED_AT = 0.3

/** What the second half stands on. */
export interface DaemonDemoDeps {
  readonly session: DemoSession
  readonly stack: AsyncDisposableStack
  readonly product: RunningProduct
  readonly github: GitHub
  readonly setup: DemoSetup
  readonly step: (title: string) => void
}

/** The customer's database, and how to ask it. */
interface Warehouse {
  readonly url: string
  readonly client: pg.Client
}

/** A run as it went through two pairs of hands. */
interface ResumedRun {
  readonly run: JsonAnswer
  /** Records that were stored when the first daemon died. */
  readonly storedBefore: number
  /** Until the second one stored its first page. */
  readonly waitedSeconds: number
}

/**
 * A daemon stores a run into PostgreSQL, is killed in the middle of it, and another one goes on; returns the names of what
 * does not add up.
 */
export async function demonstrateDaemons(deps: DaemonDemoDeps): Promise<readonly string[]> {
  const { session: story, stack, github, setup: chain, step } = deps
  step("Many records, for a database of the customer's")
  await github.fillArchive(ISSUES)
  printFact('emulation', `${counted(ISSUES, 'issue')} more, of another account`)
  const account = await connectAccount({ ...chain, story }, 'archive', github.archiveToken)
  const warehouse = await startWarehouse(stack)
  printFact('warehouse', 'a PostgreSQL that Patchbay knows nothing of')

  step('A daemon dies in the middle of a run')
  const relay = await killAndResume(deps, warehouse, account.id)

  step('What is in the warehouse')
  return await verifyStoredRecords(deps, warehouse, relay)
}

async function killAndResume(deps: DaemonDemoDeps, warehouse: Warehouse, accountId: string): Promise<ResumedRun> {
  const { session: story, setup: chain } = deps
  const first = startDaemon(deps, warehouse, 'first')
  const { id } = await chain.post('/sync-job-run', {
    sync_job_id: chain.syncJobId,
    integrated_account_id: accountId,
    daemon_group_key: GROUP,
  })
  await story.pollFor('the first daemon to store pages', async () => {
    if (first.child.exitCode !== null) throw new Error(`the first daemon ended:\n${first.output}`)
    return (await countIssues(warehouse)) >= ISSUES * KILLED_AT ? true : undefined
  })
  await first.end('SIGKILL')
  const diedAt = performance.now()
  const storedBefore = await countIssues(warehouse)
  printFact('first daemon', `killed with SIGKILL after ${storedBefore} of ${counted(ISSUES, 'issue')}`)

  startDaemon(deps, warehouse, 'second')
  await story.pollFor('the second daemon to go on', async () =>
    (await countIssues(warehouse)) > storedBefore ? true : undefined,
  )
  const waitedSeconds = (performance.now() - diedAt) / 1_000
  printFact('second daemon', `goes on after ${waitedSeconds.toFixed(0)} s: the lease of the first had to run out`)
  const run = await story.pollFor('the run to be completed', async () => {
    const found = await chain.get(`/sync-job-run/${id}`)
    if (found.status === 'failed') throw new Error(`the run failed: ${JSON.stringify(found.error)}`)
    return found.status === 'completed' ? found : undefined
  })
  return { run, storedBefore, waitedSeconds }
}

async function verifyStoredRecords(
  { github }: DaemonDemoDeps,
  { client }: Warehouse,
  relay: ResumedRun,
): Promise<readonly string[]> {
  const { run, storedBefore } = relay
  const held = (await github.holdings(github.archiveToken)).issues
  const { rows } = await client.query<{ id: number }>(`select (record->>'id')::float8 as id from github.issues`)
  const stored = new Set(rows.map(({ id }) => id))
  const isWhole = rows.length === held.size && stored.size === held.size && stored.isSubsetOf(held)
  const stats = run.resource_stats.find((each: JsonAnswer) => each.resource === 'issues')
  const verdicts = [
    { label: 'issues stored', text: `${stored.size}, each once; GitHub holds ${held.size}`, isHeld: isWhole },
    {
      label: 'of them before the kill',
      text: `${storedBefore}; the second daemon stored the rest`,
      isHeld: storedBefore > 0 && storedBefore < held.size,
    },
    {
      label: 'the run',
      text: `${run.status}, taken up ${run.attempt} times, on pages of ${PAGE_SIZE}`,
      isHeld: run.status === 'completed' && run.attempt === 2,
    },
    { label: 'its own count', text: `${stats?.delivered} delivered, complete`, isHeld: isComplete(stats, held.size) },
  ]
  for (const { label, text, isHeld } of verdicts) printCheck(label, text, isHeld)
  return verdicts.filter(({ isHeld }) => !isHeld).map(({ label }) => label)
}

function isComplete(stats: JsonAnswer | undefined, held: number): boolean {
  return stats?.delivered === held && stats.fetched === held && stats.failed === 0 && stats.complete === true
}

function startDaemon({ stack, product }: DaemonDemoDeps, { url }: Warehouse, label: string): DaemonProcess {
  const address = ['--url', product.url, '--group', GROUP, '--label', label]
  const environment = { PATCHBAY_TOKEN: product.bootstrap.environment_token, PATCHBAY_LOG_LEVEL: 'warn' }
  const daemon = stack.use(new DaemonProcess([...address, '--store', url, '--schema', 'github'], environment))
  printFact(`${label} daemon`, `patchbay daemon --group ${GROUP} --store postgres://…, process ${daemon.child.pid}`)
  return daemon
}

async function startWarehouse(stack: AsyncDisposableStack): Promise<Warehouse> {
  const dataDir = temporaryDataDir()
  stack.defer(() => removeDataDir(dataDir))
  const server = await startEmbeddedServer({ dataDir })
  stack.defer(() => server.stop())
  const url = `postgres://${server.user}@/postgres?host=${encodeURIComponent(server.host)}&port=${server.port}`
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  stack.defer(() => client.end())
  return { url, client }
}

/** Issues in the warehouse; none before the first daemon has made the table. */
async function countIssues({ client }: Warehouse): Promise<number> {
  const { rows: found } = await client.query(`select to_regclass('github.issues') is not null as "isThere"`)
  if (found[0]?.isThere !== true) return 0
  const { rows } = await client.query('select count(*)::integer as count from github.issues')
  return rows[0].count
}
