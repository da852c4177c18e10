import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { RunningProduct } from '../../support/product.ts'
import { expectJson } from '../../support/rest.ts'
import { seedChain } from '../../support/seed.ts'

const PAGES = 40
const RECORDS_PER_PAGE = 100
/** Half-way: the first daemon is killed while it waits for this page. */
const KILL_PAGE = 21
/** Answered once with 429. */
const LIMITED_PAGE = 5
const POLL_MS = 200
/** The second daemon gets the run once the lease has expired. */
const COMPLETED_WITHIN_MS = 90_000

/** The running product, and what Python needs. */
export interface ForeignDaemonOptions {
  readonly product: RunningProduct
  readonly python: string
  readonly descriptorSet: string
}

/**
 * A daemon in Python stores half of a list and is killed; a second one of its group resumes the run and stores the rest.
 *
 * @throws when a record is missing or stored twice
 */
export async function testForeignDaemon({ product, python, descriptorSet }: ForeignDaemonOptions): Promise<void> {
  const reached = Promise.withResolvers<void>()
  const upstream = await startUpstream(reached.resolve)
  const store = join(product.dataDir, 'python-store')
  mkdirSync(store)
  const { environment_token: token, team_token: teamToken, environment_id: environmentId } = product.bootstrap
  const seed = await seedChain({
    url: product.url,
    teamToken,
    environmentToken: token,
    environmentId,
    upstreamUrl: upstream.url,
  })
  const run = await expectJson('POST', `${product.url}/sync-job-run`, token, {
    sync_job_id: seed.syncJobId,
    integrated_account_id: seed.integratedAccountId,
    daemon_group_key: 'python',
  })
  const startDaemon = () => {
    const script = join(import.meta.dirname, 'daemon.py')
    const args = [script, `127.0.0.1:${product.port}`, token, descriptorSet, 'python', store]
    return spawn(python, args, { stdio: 'inherit' })
  }
  const first = startDaemon()
  await orExit(first, reached.promise).finally(() => first.kill('SIGKILL'))
  upstream.unblock()
  const second = startDaemon()
  const exited = once(second, 'exit')
  const completed = await orExit(second, waitUntilEnded(product.url, token, run.id)).finally(() =>
    second.kill('SIGTERM'),
  )
  const [code] = await exited
  upstream.close()
  check(store, completed, code)
}

function check(store: string, run: Record<string, unknown>, exitCode: unknown): void {
  const files = readdirSync(store)
  const ids = files.flatMap((file) =>
    readFileSync(join(store, file), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line): number => JSON.parse(line).id),
  )
  const total = PAGES * RECORDS_PER_PAGE
  const actual = { status: run.status, attempt: run.attempt, stored: ids.length, distinct: new Set(ids).size, exitCode }
  const expected = { status: 'completed', attempt: 2, stored: total, distinct: total, exitCode: 0 }
  const stats = JSON.stringify(run.resource_stats)
  const hasStats = stats.includes(`"delivered":${total}`) && stats.includes('"complete":true')
  if (JSON.stringify(actual) !== JSON.stringify(expected) || !hasStats)
    throw new Error(`expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)} and ${stats}`)
  console.log(`ok: two Python daemons, one killed, stored ${total} of ${total} records once each`)
}

async function waitUntilEnded(url: string, token: string, id: string): Promise<Record<string, unknown>> {
  for (const end = Date.now() + COMPLETED_WITHIN_MS; Date.now() < end; ) {
    const run = await expectJson('GET', `${url}/sync-job-run/${id}`, token)
    if (run.status === 'completed' || run.status === 'failed') return run
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw new Error(`the run had not ended after ${COMPLETED_WITHIN_MS} ms`)
}

/** The result of the work, unless the process exits first. */
async function orExit<Result>(child: ChildProcess, work: Promise<Result>): Promise<Result> {
  const ended = once(child, 'exit').then(([code]): never => {
    throw new Error(`the daemon ended with ${code}`)
  })
  ended.catch(() => {})
  return await Promise.race([work, ended])
}

/** An upstream that does not answer KILL_PAGE before `unblock`. */
async function startUpstream(onKillPage: () => void) {
  let isUnblocked = false
  let isLimited = true
  const server = createServer((request, response) => {
    const page = Number(new URL(request.url ?? '/', 'http://upstream').searchParams.get('page') ?? 1)
    if (page === KILL_PAGE && !isUnblocked) return onKillPage()
    if (page === LIMITED_PAGE && isLimited) {
      isLimited = false
      return response.writeHead(429, { 'retry-after': '1' }).end()
    }
    const first = (page - 1) * RECORDS_PER_PAGE
    const count = page > PAGES ? 0 : RECORDS_PER_PAGE
    const data = Array.from({ length: count }, (_, index) => ({ id: first + index, name: `Contact ${first + index}` }))
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    unblock: () => {
      isUnblocked = true
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
