/**
 * The disk of the database is full, then has room again, under `patchbay start` with its embedded PostgreSQL on a tmpfs of 200 MB.
 *
 * While it is full reads are answered, writes are 503 DATABASE_DISK_FULL, `/healthz` and the metrics say so within seconds, and
 * the log has one line about it; afterwards all is well without a restart, and nothing that was acknowledged is lost. Needs
 * the right to mount.
 */

import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, type RunningProduct, startProduct } from '../../support/product.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'

const DISK_MB = 200
const TURNS_MS = 15_000
const POLL_MS = 100
const FULL_FOR_MS = 10_000
const BALLAST = 'ballast'

let made = 0

const disk = mkdtempSync(join(tmpdir(), 'patchbay-disk-'))
execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=711`, 'tmpfs', disk])
chmodSync(disk, 0o711)
try {
  const metricsPort = await freePort()
  const environment = {
    PATCHBAY_METRICS_PORT: String(metricsPort),
    PATCHBAY_RATE_LIMIT: '0',
    PATCHBAY_LOG_LEVEL: 'info',
  }
  const product = await startProduct({ dataDir: join(disk, 'data'), environment, healthyWithinMs: 60_000 })
  const created = [await createIntegration(product)]
  fillDisk()
  const refused = await untilRefused(product, created)
  const noticedMs = await untilHealth(product, 503)
  const health = (await (await fetch(`${product.url}/healthz`)).json()) as { reason: string }
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
  await sleep(FULL_FOR_MS)
  const read = await list(product)
  rmSync(join(disk, BALLAST))
  const recoveredMs = await untilHealth(product, 200)
  created.push(await createIntegration(product))
  const names = (await list(product)).names
  const lines = product.output().split('\n')
  await product.stop()
  reportAtLeast('disk-full/refused-503', Number(refused.status === 503), 'of 1', 1)
  reportAtLeast('disk-full/refused-with-reason', Number(refused.reason === 'DATABASE_DISK_FULL'), 'of 1', 1)
  reportAtLeast('disk-full/health-names-reason', Number(health.reason === 'DATABASE_DISK_FULL'), 'of 1', 1)
  reportAtLeast(
    'disk-full/metric',
    Number(metrics.includes('patchbay_health_problem{reason="DATABASE_DISK_FULL"} 1')),
    'of 1',
    1,
  )
  reportAtLeast('disk-full/reads-answered', Number(read.status === 200), 'of 1', 1)
  reportAtMost('disk-full/noticed', noticedMs, 'ms', 3_000)
  reportAtMost('disk-full/recovered', recoveredMs, 'ms', TURNS_MS)
  reportAtMost('disk-full/lost', created.filter((name) => !names.includes(name)).length, 'integrations', 0)
  reportAtMost(
    'disk-full/log-lines',
    lines.filter((line) => line.includes('disk of the database is full')).length - refusedWrites(lines),
    'lines',
    1,
  )
  reportAtMost('disk-full/defects-logged', lines.filter((line) => line.includes('"level":"error"')).length, 'lines', 0)
} finally {
  execFileSync('umount', ['-l', disk])
  rmdirSync(disk)
}

/** Leaves no byte. */
function fillDisk(): void {
  const chunk = Buffer.alloc(64 * 1024)
  for (;;) {
    const { bavail, bsize } = statfsSync(disk)
    const free = bavail * bsize
    if (free === 0) return
    try {
      writeFileSync(join(disk, BALLAST), chunk.subarray(0, Math.min(free, chunk.length)), { flag: 'a' })
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
      return
    }
  }
}

interface Answer {
  readonly status: number
  readonly reason: string | undefined
}

async function post({ url, bootstrap }: RunningProduct, name: string): Promise<Answer> {
  const answer = await fetch(`${url}/integration`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bootstrap.team_token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name, config: { base_url: 'https://api.example.com', resources: {} } }),
  })
  const body = (await answer.json()) as { error?: { details?: { reason?: string }[] } }
  return { status: answer.status, reason: body.error?.details?.[0]?.reason }
}

async function createIntegration(product: RunningProduct): Promise<string> {
  const name = `i${++made}`
  const { status, reason } = await post(product, name)
  if (status !== 200) throw new Error(`${status} ${reason}`)
  return name
}

/** Writes until the pages that PostgreSQL had left are full. */
async function untilRefused(product: RunningProduct, names: string[]): Promise<Answer> {
  for (;;) {
    const name = `i${++made}`
    const answer = await post(product, name)
    if (answer.status !== 200) return answer
    names.push(name)
  }
}

async function list({ url, bootstrap }: RunningProduct): Promise<{ status: number; names: readonly string[] }> {
  const names: string[] = []
  let token = ''
  for (;;) {
    const answer = await fetch(`${url}/integration?page_size=1000&page_token=${encodeURIComponent(token)}`, {
      headers: { authorization: `Bearer ${bootstrap.team_token}` },
    })
    const page = (await answer.json()) as { integrations?: { name: string }[]; next_page_token?: string }
    names.push(...(page.integrations ?? []).map((each) => each.name))
    token = page.next_page_token ?? ''
    if (token === '') return { status: answer.status, names }
  }
}

async function untilHealth({ url }: RunningProduct, status: number): Promise<number> {
  const started = performance.now()
  while ((await fetch(`${url}/healthz`)).status !== status) await sleep(POLL_MS)
  return performance.now() - started
}

/** Lines about single requests, which are logged by request id. */
function refusedWrites(lines: readonly string[]): number {
  return lines.filter((line) => line.includes('disk of the database is full') && line.includes('request_id')).length
}
