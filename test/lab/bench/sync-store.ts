import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startEmbeddedServer } from '../../../src/foundation/database/index.ts'
import { type RunningProduct, removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { expectJson } from '../../support/rest.ts'
import { type Seed, seedChain } from '../../support/seed.ts'
import { DaemonProcess } from '../../unit/cli/daemon/support/daemon-process.ts'
import { Peer } from './support/peer.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from './support/report.ts'

/** `BENCH_RECORDS` for a short form; with 1000000 the memory of the daemon is measured as the targets ask. */
const RECORDS = Number(process.env.BENCH_RECORDS ?? 100_000)
const PAGE_SIZES = [100, 1_000]
const RATIO_MIN = 0.6
/** At the larger page. */
const RECORDS_PER_SECOND_MIN = 18_000
const MEMORY_MAX_MB = 200
/** The peak of the second half of all rounds with one page size, at most so many times that of the first. */
const GROWTH_MAX = 1.25
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
const POLL_MS = 20
const MEMORY_POLL_MS = 200
const GROUP = 'bench'
/** `BENCH_CPU_PROFILE` names a directory for the daemon's CPU profile. */
const PROFILE = process.env.BENCH_CPU_PROFILE

/** The scene of all measurements. */
interface Scene {
  readonly product: RunningProduct
  readonly daemon: DaemonProcess
  readonly store: pg.Client
}

/** Records of a list brought into PostgreSQL by a daemon process, against a hand-written loop of fetch and upsert. */
export async function run(): Promise<void> {
  await using upstream = new Peer<string>('sync-upstream-main.ts', [String(RECORDS)])
  const upstreamUrl = await upstream.next()
  await using database = await startDatabase()
  const dataDir = temporaryDataDir()
  const product = await startProduct({
    dataDir,
    environment: { PATCHBAY_RATE_LIMIT: '0', PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' },
  })
  const store = new pg.Client({ connectionString: database.url })
  await store.connect()
  try {
    await using daemon = new DaemonProcess(
      ['--url', product.url, '--group', GROUP, '--store', database.url, '--schema', 'daemon'],
      { PATCHBAY_TOKEN: product.bootstrap.environment_token, PATCHBAY_LOG_LEVEL: 'warn' },
      PROFILE === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${PROFILE}`],
    )
    for (const size of PAGE_SIZES) {
      const memory = watchMemory(daemon)
      await compare({ product, daemon, store }, upstreamUrl, database.url, size)
      reportMemory(size, memory.stop())
    }
    await daemon.end('SIGTERM')
  } finally {
    await store.end()
    await product.stop()
    removeDataDir(dataDir)
  }
}

/** Median of interleaved rounds, after one that warms both up. */
async function compare(scene: Scene, upstreamUrl: string, storeUrl: string, size: number): Promise<void> {
  const seed = await seedPages(scene.product, upstreamUrl, size)
  await using floor = new Peer<number>('store-baseline-main.ts', [upstreamUrl, storeUrl, String(size)])
  await floor.next()
  const seconds = { floor: [] as number[], product: [] as number[] }
  for (let round = 0; round <= ROUNDS; round++) {
    const taken = { floor: await floorSeconds(floor), product: await productSeconds(scene, seed) }
    if (round === 0) continue
    seconds.floor.push(taken.floor)
    seconds.product.push(taken.product)
  }
  const [bare, product] = [RECORDS / medianOf(seconds.floor), RECORDS / medianOf(seconds.product)]
  const name = `sync-store/page-${size}`
  reportBaseline(`${name}/floor`, bare, 'records/s')
  if (size === PAGE_SIZES.at(-1)) reportAtLeast(name, product, 'records/s', RECORDS_PER_SECOND_MIN)
  else reportBaseline(name, product, 'records/s')
  reportAtLeast(`${name}/ratio`, product / bare, 'x floor', RATIO_MIN)
}

async function floorSeconds(floor: Peer<number>): Promise<number> {
  const taken = floor.next()
  floor.go()
  return await taken
}

/** From the first attempt to the end, by the clock of the product. */
async function productSeconds({ product, daemon, store }: Scene, seed: Seed): Promise<number> {
  const { url, bootstrap } = product
  const token = bootstrap.environment_token
  const { rows: found } = await store.query("select to_regclass('daemon.contacts') is not null as is_there")
  if (found[0].is_there) await store.query('truncate daemon.contacts')
  const { id } = await expectJson('POST', `${url}/sync-job-run`, token, {
    sync_job_id: seed.syncJobId,
    integrated_account_id: seed.integratedAccountId,
    daemon_group_key: GROUP,
    ignore_previous_run: true,
  })
  for (;;) {
    const run = await expectJson('GET', `${url}/sync-job-run/${id}`, token)
    if (run.status === 'failed' || daemon.child.exitCode !== null)
      throw new Error(`${JSON.stringify(run.error)}\n${daemon.output}`)
    if (run.status === 'completed') {
      const { rows } = await store.query('select count(*)::integer as count from daemon.contacts')
      if (rows[0].count !== RECORDS) throw new Error(`${rows[0].count} records were stored`)
      return (Date.parse(run.finished_at) - Date.parse(run.started_at)) / 1_000
    }
    await sleep(POLL_MS)
  }
}

/** The chain for one page size, with its account active. */
async function seedPages({ url, bootstrap }: RunningProduct, upstreamUrl: string, size: number): Promise<Seed> {
  const token = bootstrap.environment_token
  const seed = await seedChain({
    url,
    upstreamUrl,
    name: `contacts-${size}`,
    environmentId: bootstrap.environment_id,
    teamToken: bootstrap.team_token,
    environmentToken: token,
  })
  const override = { pagination: { config: { limit: size } } }
  await expectJson('PATCH', `${url}/environment-integration/${seed.environmentIntegrationId}`, token, { override })
  for (;;) {
    const { status } = await expectJson('GET', `${url}/integrated-account/${seed.integratedAccountId}`, token)
    if (status === 'active') return seed
    await sleep(POLL_MS)
  }
}

/** A PostgreSQL of the customer's, durable like the product's. */
async function startDatabase(): Promise<{ readonly url: string } & AsyncDisposable> {
  const dataDir = mkdtempSync(join(tmpdir(), 'patchbay-bench-'))
  chmodSync(dataDir, 0o711) // root's servers run under another uid, which must be able to walk in
  const server = await startEmbeddedServer({ dataDir })
  return {
    url: `postgres://${server.user}@/postgres?host=${encodeURIComponent(server.host)}&port=${server.port}`,
    async [Symbol.asyncDispose]() {
      await server.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Samples what the daemon's process keeps in memory, MB. Linux only; elsewhere there are no samples. */
function watchMemory({ child }: DaemonProcess): { stop(): readonly number[] } {
  const samples: number[] = []
  const timer = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
      samples.push(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024)
    } catch {
      // The process has ended.
    }
  }, MEMORY_POLL_MS)
  return {
    stop() {
      clearInterval(timer)
      return samples
    },
  }
}

function reportMemory(size: number, samples: readonly number[]): void {
  if (samples.length < 4) return
  const half = Math.floor(samples.length / 2)
  const [first, second] = [Math.max(...samples.slice(0, half)), Math.max(...samples.slice(half))]
  reportAtMost(`sync-store/page-${size}/memory-peak`, Math.max(first, second), 'MB', MEMORY_MAX_MB)
  reportAtMost(`sync-store/page-${size}/memory-growth`, second / first, 'x first half', GROWTH_MAX)
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}
