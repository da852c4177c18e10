/**
 * What surrounds a process fails: its log, its database, its terminal, its limits, its owner. The processes are real, and so are
 * the signals and the clock; about three minutes.
 *
 * Nothing outside stops a process in silence: it goes on or says why, it ends within its limit after a signal, and its
 * PostgreSQL with it. Needs `script` (util-linux) for a terminal.
 *
 * Each part starts real processes and breaks one thing around them: standard error that is full, closed or not read; a
 * database, a store of a daemon or an embedded server whose processes are suspended, so that the kernel accepts connections and
 * nothing answers; each signal; a terminal that goes; an owner that is killed; a start that fails after PostgreSQL was started;
 * a limit of open files. `…-stop` is the time from the signal to the end of the process, at most `PATCHBAY_DRAIN_MS` and the
 * lateness of a timer on a busy machine; `…-postgres` what is left of the embedded PostgreSQL, or how long until nothing is.
 * `NaN` (printed as null) is a wrong exit code.
 */

import { closeSync, openSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { DaemonCluster } from './support/daemon-cluster.ts'
import { Surrounded, suspend } from './support/surroundings.ts'

/** Default of PATCHBAY_DRAIN_MS, and how late a timer is on a busy machine. */
const LIMIT_MS = 28_000
const PROBE_MS_MAX = 1_500
const LINES = 8_000
const CLIENTS = 32
const FILES_MAX = 150

/** As many rejected requests as lines are logged at level `debug`. */
async function logLines({ url }: Surrounded, lines: number): Promise<void> {
  let left = lines
  const client = async () => {
    while (left-- > 0) await (await fetch(`${url}/integration`)).arrayBuffer()
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
}

const DEBUG = { PATCHBAY_LOG_LEVEL: 'debug' }

async function fullLog(): Promise<void> {
  const full = openSync('/dev/full', 'w')
  await using product = await Surrounded.start({ environment: DEBUG, stdio: ['ignore', full, full] })
  closeSync(full)
  await logLines(product, 200)
  const { status } = await product.probe('/livez', product.url)
  reportAtLeast('surroundings/log-full-answers', Number(status === 200), 'of 1', 1)
  // Those of the last moment still wait for another attempt.
  const dropped = async () => (await product.metric('patchbay_log_lines_dropped_total')) ?? 0
  await product.until(async () => (await dropped()) >= 200)
  reportAtLeast('surroundings/log-full-dropped', await dropped(), 'lines', 200)
  const { ms, exitCode } = await product.end('SIGTERM')
  reportAtMost('surroundings/log-full-stop', exitCode === 0 ? ms : Number.NaN, 'ms', LIMIT_MS)
}

async function closedLog(): Promise<void> {
  await using product = await Surrounded.start({ environment: DEBUG, stdio: ['ignore', 'pipe', 'pipe'] })
  product.child.stdout?.destroy()
  product.child.stderr?.destroy()
  await logLines(product, 200)
  reportAtLeast(
    'surroundings/log-closed-dropped',
    (await product.metric('patchbay_log_lines_dropped_total')) ?? 0,
    'lines',
    100,
  )
  const { ms, exitCode } = await product.end('SIGTERM')
  reportAtMost('surroundings/log-closed-stop', exitCode === 0 ? ms : Number.NaN, 'ms', LIMIT_MS)
}

/** The pipe is not read; later it is. */
async function stalledLog(): Promise<void> {
  await using product = await Surrounded.start({ environment: DEBUG, stdio: ['ignore', 'pipe', 'pipe'] })
  await logLines(product, LINES)
  const memoryBefore = (await product.metric('process_resident_memory_bytes')) ?? 0
  await logLines(product, LINES)
  const grownMb = (((await product.metric('process_resident_memory_bytes')) ?? 0) - memoryBefore) / 1e6
  const dropped = (await product.metric('patchbay_log_lines_dropped_total')) ?? 0
  reportAtLeast('surroundings/log-stalled-dropped', dropped, 'lines', LINES)
  reportAtMost('surroundings/log-stalled-memory', grownMb, 'MB', 150)
  let text = ''
  product.child.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await product.until(() => text.includes('log lines were dropped'))
  const unread = text
    .split('\n')
    .slice(0, -1)
    .filter((line) => !isJson(line))
  reportAtMost('surroundings/log-stalled-broken-lines', unread.length, 'lines', 0)
  product.child.stderr?.pause()
  await logLines(product, LINES)
  const { ms, exitCode } = await product.end('SIGTERM')
  reportAtMost('surroundings/log-stalled-stop', exitCode === 0 ? ms : Number.NaN, 'ms', LIMIT_MS)
}

/** As by Ctrl-S or `docker run -t`: `script` is the terminal, and its own output is not read. */
async function stalledTerminal(): Promise<void> {
  await using product = await Surrounded.start({
    environment: DEBUG,
    wrap: inTerminal,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  await logLines(product, LINES)
  const { status } = await product.probe('/livez', product.url)
  reportAtLeast('surroundings/terminal-stalled-answers', Number(status === 200), 'of 1', 1)
  const dropped = (await product.metric('patchbay_log_lines_dropped_total')) ?? 0
  reportAtLeast('surroundings/terminal-stalled-dropped', dropped, 'lines', 1)
  product.child.kill('SIGKILL')
  const ms = await product.until(
    async () => (await product.probe('/livez')).status === 0 && product.postgres().length === 0,
  )
  reportAtMost('surroundings/terminal-stalled-stop', ms, 'ms', LIMIT_MS)
}

function inTerminal(line: string): [string, ...string[]] {
  return ['script', '-qec', `exec ${line}`, '/dev/null']
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line)
    return true
  } catch {
    return false
  }
}

/** The database accepts and never answers; then it goes on. */
async function hungDatabase(command: 'start' | 'worker'): Promise<void> {
  await using durable = await startDurableDatabase()
  const environment = {
    DATABASE_URL: durable.url,
    PATCHBAY_ENCRYPTION_KEYS: `k:${Buffer.alloc(32, 7).toString('base64')}`,
  }
  await using product = await Surrounded.start({ command, environment })
  const name = `surroundings/database-hung-${command}`
  const suspended = suspend(join(durable.dataDir, 'postgres/data'))
  const noticedMs = await product.until(async () => (await product.probe('/readyz')).status === 503)
  const bases = command === 'start' ? [product.metricsUrl, product.url] : [product.metricsUrl]
  const probes = await Promise.all(
    bases.flatMap((base) => ['/livez', '/readyz', '/healthz'].map((path) => product.probe(path, base))),
  )
  const metrics = await product.probe('/metrics')
  reportAtMost(`${name}-noticed`, noticedMs, 'ms', 4_000)
  reportAtMost(`${name}-probe`, Math.max(...probes.map(({ ms }) => ms)), 'ms', PROBE_MS_MAX)
  reportAtLeast(
    `${name}-live`,
    probes.filter(({ status }, index) => index % 3 === 0 && status === 200).length,
    'probes',
    bases.length,
  )
  reportAtMost(`${name}-scrape`, metrics.ms, 'ms', PROBE_MS_MAX)
  reportAtLeast(`${name}-own-figures`, Number(metrics.text.includes('process_resident_memory_bytes ')), 'of 1', 1)
  // Figures of the last moments stand until they are read again.
  const absentMs = await product.until(async () => (await product.metric('patchbay_database_figures')) === 0)
  reportAtMost(`${name}-figures-absent`, absentMs, 'ms', 15_000)
  suspended[Symbol.dispose]()
  const readyMs = await product.until(async () => (await product.probe('/readyz')).status === 200)
  reportAtMost(`${name}-ready-again`, readyMs, 'ms', 15_000)
  using _again = suspend(join(durable.dataDir, 'postgres/data'))
  const { ms } = await product.end('SIGTERM')
  reportAtMost(`${name}-stop`, ms, 'ms', LIMIT_MS)
}

async function signals(): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP'] as const) {
    await using product = await Surrounded.start()
    const { ms, exitCode } = await product.end(signal)
    reportAtMost(`surroundings/${signal}`, exitCode === 0 ? ms : Number.NaN, 'ms', LIMIT_MS)
    reportAtMost(`surroundings/${signal}-postgres`, product.postgres().length, 'processes', 0)
  }
  await using product = await Surrounded.start({ environment: { PATCHBAY_DRAIN_GRACE_MS: '20000' } })
  const twice = await product.end('SIGTERM', 'SIGTERM')
  reportAtMost('surroundings/second-signal', twice.exitCode === 130 ? twice.ms : Number.NaN, 'ms', 1_000)
  const goneMs = await product.until(() => product.postgres().length === 0)
  reportAtMost('surroundings/second-signal-postgres', goneMs, 'ms', 6_000)
}

/** The terminal goes: SIGHUP, and EIO for what is written to it. */
async function closedTerminal(): Promise<void> {
  await using product = await Surrounded.start({ environment: DEBUG, wrap: inTerminal })
  await logLines(product, 50)
  product.child.kill('SIGKILL')
  const ms = await product.until(
    async () => (await product.probe('/livez')).status === 0 && product.postgres().length === 0,
  )
  reportAtMost('surroundings/closed-terminal', ms, 'ms', LIMIT_MS)
}

/** PostgreSQL was started, and then the start cannot go on, is stopped, or its owner is killed. */
async function ownerless(): Promise<void> {
  const dataDir = await failedStart()
  await using killed = await Surrounded.start({ dataDir })
  const [server] = killed.postgres()
  await killed.end('SIGKILL')
  reportAtLeast('surroundings/owner-killed-left', Number(killed.postgres().length > 0), 'of 1', 0)
  await using next = await Surrounded.start({ dataDir })
  reportAtLeast('surroundings/owner-killed-taken-over', Number(next.postgres()[0] === server), 'of 1', 1)
  await next.end('SIGTERM')
  reportAtMost('surroundings/owner-killed-postgres', next.postgres().length, 'processes', 0)
  await using stopped = await Surrounded.begin({ dataDir })
  await stopped.until(() => stopped.postgres().length > 0)
  const { ms } = await stopped.end('SIGTERM')
  reportAtMost('surroundings/stopped-start', ms, 'ms', LIMIT_MS)
  reportAtMost('surroundings/stopped-start-postgres', stopped.postgres().length, 'processes', 0)
}

/** @returns its data directory, which works with its own key */
async function failedStart(): Promise<string> {
  const first = await Surrounded.start()
  await first.end('SIGTERM')
  const { dataDir } = first
  // Keys are read after PostgreSQL was started.
  const PATCHBAY_ENCRYPTION_KEYS = 'other:too-short'
  const failed = await Surrounded.begin({ dataDir, environment: { PATCHBAY_ENCRYPTION_KEYS } })
  reportAtLeast('surroundings/failed-start', Number((await failed.ended) === 1), 'of 1', 1)
  reportAtMost('surroundings/failed-start-postgres', failed.postgres().length, 'processes', 0)
  return dataDir
}

/** The embedded PostgreSQL is suspended when the process gets its signal. */
async function hungEmbedded(): Promise<void> {
  await using product = await Surrounded.start()
  suspend(join(product.dataDir, 'postgres/data'))
  const { ms } = await product.end('SIGTERM')
  reportAtMost('surroundings/embedded-hung-stop', ms, 'ms', LIMIT_MS)
  const goneMs = await product.until(() => product.postgres().length === 0)
  reportAtMost('surroundings/embedded-hung-postgres', goneMs, 'ms', 8_000)
}

/** The store of a daemon hangs in the middle of a run, and before anything. */
async function hungStore(): Promise<void> {
  await using cluster = await DaemonCluster.start({ records: 100_000, delayMs: () => 20 })
  const [account = ''] = await cluster.addAccounts(1)
  const daemon = cluster.addDaemon()
  const run = await cluster.createRun(account, 'a')
  while ((await cluster.look(run)).status !== 'running') await new Promise((resolve) => setTimeout(resolve, 100))
  using _suspended = suspend(cluster.storeDataDir)
  const startedMs = performance.now()
  await daemon.process.end('SIGTERM')
  reportAtMost('surroundings/daemon-store-hung-stop', performance.now() - startedMs, 'ms', LIMIT_MS)
  const early = cluster.addDaemon()
  await new Promise((resolve) => early.process.child.once('spawn', resolve))
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  const earlyMs = performance.now()
  await early.process.end('SIGTERM')
  reportAtMost('surroundings/daemon-store-hung-start-stop', performance.now() - earlyMs, 'ms', LIMIT_MS)
}

/** Clients open as many connections as the process may have files. */
async function openFiles(): Promise<void> {
  const wrap = (line: string): [string, ...string[]] => ['sh', '-c', `ulimit -n ${FILES_MAX}; exec ${line}`]
  await using product = await Surrounded.start({ wrap, environment: { PATCHBAY_DATABASE_POOL: '4' } })
  const port = Number(new URL(product.url).port)
  const sockets: Socket[] = []
  for (let each = 0; each < FILES_MAX * 2; each++) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => socket.destroy())
    sockets.push(socket)
  }
  const loggedMs = await product.until(() => product.output.includes('TOO_MANY_OPEN_FILES'))
  reportAtMost('surroundings/open-files-logged', loggedMs, 'ms', 10_000)
  for (const socket of sockets) socket.destroy()
  const healthyMs = await product.until(async () => (await product.probe('/readyz')).status === 200)
  reportAtMost('surroundings/open-files-healthy-again', healthyMs, 'ms', 15_000)
  const { status } = await product.probe('/openapi.json', product.url)
  reportAtLeast('surroundings/open-files-answers', Number(status === 200), 'of 1', 1)
  const { exitCode } = await product.end('SIGTERM')
  reportAtMost('surroundings/open-files-exit', exitCode ?? 1, 'code', 0)
}

await fullLog()
await closedLog()
await stalledLog()
await stalledTerminal()
await hungDatabase('start')
await hungDatabase('worker')
await signals()
await closedTerminal()
await ownerless()
await hungEmbedded()
await hungStore()
await openFiles()
