import pg from 'pg'
import { startEmbeddedServer } from '../../../src/foundation/database/index.ts'
import { type RunningProduct, removeDataDir, temporaryDataDir } from '../../support/product.ts'
import type { JsonAnswer } from '../../support/rest.ts'
import { DaemonProcess } from '../../unit/cli/daemon/support/daemon-process.ts'
import type { GitHub } from './github.ts'
import { counted, printCheck, printFact } from './report.ts'
import type { DemoSession } from './session.ts'
import { connectAccount, type DemoSetup, PAGE_SIZE } from './setup.ts'

const GROUP = 'warehouse'
/** Enough for a run of some seconds with three records per page. */
const ISSUES = 1_200
/** The first daemon is killed after this share of them. */
const KILLED_AT = 0.3

/** What the daemon steps need. */
export interface DaemonDemoDeps {
  readonly session: DemoSession
  readonly stack: AsyncDisposableStack
  readonly product: RunningProduct
  readonly github: GitHub
  readonly setup: DemoSetup
  readonly step: (title: string) => void
}

/** The customer's database with a client. */
interface Warehouse {
  readonly url: string
  readonly client: pg.Client
}

/** A run that a second daemon resumed. */
interface ResumedRun {
  readonly run: JsonAnswer
  /** Records stored when the first daemon was killed. */
  readonly storedBefore: number
  /** From the kill until the second daemon stored its first page. */
  readonly waitedSeconds: number
}

/**
 * A daemon stores a run into PostgreSQL and is killed in the middle of it; another one resumes.
 *
 * @returns the names of failed checks
 */
export async function demonstrateDaemons(deps: DaemonDemoDeps): Promise<readonly string[]> {
  const { session, stack, github, setup, step } = deps
  step('Many records for a database of the customer')
  await github.fillArchive(ISSUES)
  printFact('emulation', `${counted(ISSUES, 'issue')} more, of another account`)
  const account = await connectAccount({ ...setup, session }, 'archive', github.archiveToken)
  const warehouse = await startWarehouse(stack)
  printFact('warehouse', 'a PostgreSQL outside Patchbay')

  step('A daemon is killed in the middle of a run')
  const relay = await killAndResume(deps, warehouse, account.id)

  step('Records in the warehouse')
  return await verifyStoredRecords(deps, warehouse, relay)
}

async function killAndResume(deps: DaemonDemoDeps, warehouse: Warehouse, accountId: string): Promise<ResumedRun> {
  const { session, setup } = deps
  const first = startDaemon(deps, warehouse, 'first')
  const { id } = await setup.post('/sync-job-run', {
    sync_job_id: setup.syncJobId,
    integrated_account_id: accountId,
    daemon_group_key: GROUP,
  })
  await session.pollFor('the first daemon to store pages', async () => {
    if (first.child.exitCode !== null) throw new Error(`the first daemon ended:\n${first.output}`)
    return (await countIssues(warehouse)) >= ISSUES * KILLED_AT ? true : undefined
  })
  await first.end('SIGKILL')
  const killedAt = performance.now()
  const storedBefore = await countIssues(warehouse)
  printFact('first daemon', `killed with SIGKILL after ${storedBefore} of ${counted(ISSUES, 'issue')}`)

  startDaemon(deps, warehouse, 'second')
  await session.pollFor('the second daemon to resume', async () =>
    (await countIssues(warehouse)) > storedBefore ? true : undefined,
  )
  const waitedSeconds = (performance.now() - killedAt) / 1_000
  printFact('second daemon', `resumes after ${waitedSeconds.toFixed(0)} s, when the lease of the first one has expired`)
  const run = await session.pollFor('the run to be completed', async () => {
    const found = await setup.get(`/sync-job-run/${id}`)
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
  const checks = [
    { label: 'issues stored', text: `${stored.size}, each once; GitHub holds ${held.size}`, isCorrect: isWhole },
    {
      label: 'stored before the kill',
      text: `${storedBefore}; the second daemon stored the rest`,
      isCorrect: storedBefore > 0 && storedBefore < held.size,
    },
    {
      label: 'the run',
      text: `${run.status} in attempt ${run.attempt}, with pages of ${PAGE_SIZE}`,
      isCorrect: run.status === 'completed' && run.attempt === 2,
    },
    {
      label: 'statistics of the run',
      text: `${stats?.delivered} delivered, complete`,
      isCorrect: isComplete(stats, held.size),
    },
  ]
  for (const { label, text, isCorrect } of checks) printCheck(label, text, isCorrect)
  return checks.filter(({ isCorrect }) => !isCorrect).map(({ label }) => label)
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

/** Issues in the warehouse; 0 before the first daemon has created the table. */
async function countIssues({ client }: Warehouse): Promise<number> {
  const { rows: found } = await client.query(`select to_regclass('github.issues') is not null as "exists"`)
  if (found[0]?.exists !== true) return 0
  const { rows } = await client.query('select count(*)::integer as count from github.issues')
  return rows[0].count
}
