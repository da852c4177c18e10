/**
 * The tokens of 10 000 accounts of one third party (`PATCHBAY_FAULTS_ACCOUNTS` for more or fewer) are due at the same moment,
 * with two workers; about five minutes. The third party must see a bounded rate and few requests at once, each account must be
 * refreshed once, and accounts of another third party must be refreshed before their tokens expire too.
 */

import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { execute, queryOne } from '../../../src/foundation/database/database.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { RefreshCluster } from './support/refresh-cluster.ts'
import { sendJson, startTokenEndpoint } from './support/token-endpoint.ts'

const ACCOUNTS = Number(process.env.PATCHBAY_FAULTS_ACCOUNTS ?? 10_000)
const OTHERS = 20
const WORKERS = 2
const ANSWER_MS = 50
/** What the product promises: 8 requests of a process at once, 50 per second after a burst of 25. */
const IN_FLIGHT_MAX = 8 * WORKERS
const PER_SECOND_MAX = 100
const CREATE_AT_ONCE = 16
const POLL_MS = 250
/** Every token must be refreshed by then: the refresh margin. */
const DEADLINE_MS = 300_000

/** Counts the token requests of one third party. */
class Tally {
  readonly answeredAt: number[] = []
  readonly perAccount = new Map<string, number>()
  inFlightMax = 0
  #inFlight = 0

  async answer(refreshToken: string, response: ServerResponse): Promise<void> {
    this.inFlightMax = Math.max(this.inFlightMax, ++this.#inFlight)
    this.answeredAt.push(performance.now())
    this.perAccount.set(refreshToken, (this.perAccount.get(refreshToken) ?? 0) + 1)
    await sleep(ANSWER_MS)
    this.#inFlight--
    sendJson(response, 200, { access_token: 'new', expires_in: 86_400 })
  }

  /** Most requests that came within any second. */
  get perSecondMax(): number {
    let [most, first] = [0, 0]
    for (const [index, at] of this.answeredAt.entries()) {
      while (at - (this.answeredAt[first] ?? at) >= 1_000) first++
      most = Math.max(most, index - first + 1)
    }
    return most
  }
}

async function storm(): Promise<void> {
  const [crowded, quiet] = [new Tally(), new Tally()]
  await using endpoint = await startTokenEndpoint((token, response) => crowded.answer(token, response))
  await using elsewhere = await startTokenEndpoint((token, response) => quiet.answer(token, response))
  await using cluster = await RefreshCluster.start(1, endpoint)
  await addAccounts(cluster, ACCOUNTS)
  await cluster.install('quiet', elsewhere)
  await addAccounts(cluster, OTHERS)
  const dueSql = `update account_token set due_at = now() - interval '1 second', expires_at = now() + interval '5 minutes'`
  await execute(cluster.database.pool, dueSql, {})
  const startedAt = performance.now()
  const workers = await Promise.all(Array.from({ length: WORKERS }, () => cluster.startWorker()))
  const quietMs: number[] = []
  for (; performance.now() - startedAt < DEADLINE_MS; await sleep(POLL_MS)) {
    if (quiet.perAccount.size === OTHERS && quietMs.length === 0) quietMs.push(performance.now() - startedAt)
    if ((await dueCount(cluster)) === 0) break
  }
  const seconds = (performance.now() - startedAt) / 1_000
  const left = await dueCount(cluster)
  for (const worker of workers) worker.kill('SIGTERM')
  const repeated = [...crowded.perAccount.values()].filter((requests) => requests > 1).length
  reportAtLeast('refresh-storm/accounts', crowded.perAccount.size, 'accounts', ACCOUNTS)
  reportAtMost('refresh-storm/not-refreshed', left, 'accounts', 0)
  reportAtMost('refresh-storm/refreshed-twice', repeated, 'accounts', 0)
  reportAtMost('refresh-storm/in-flight', crowded.inFlightMax, 'requests', IN_FLIGHT_MAX)
  reportAtMost('refresh-storm/per-second', crowded.perSecondMax, 'requests', PER_SECOND_MAX)
  reportAtMost('refresh-storm/seconds', seconds, 's', DEADLINE_MS / 1_000)
  reportAtMost(
    'refresh-storm/others-waited',
    (quietMs[0] ?? Number.POSITIVE_INFINITY) / 1_000,
    's',
    DEADLINE_MS / 1_000,
  )
}

async function addAccounts(cluster: RefreshCluster, count: number): Promise<void> {
  let next = 0
  const add = async () => {
    while (next < count) await cluster.addAccount(`refresh-${next++}`, 86_400)
  }
  await Promise.all(Array.from({ length: CREATE_AT_ONCE }, add))
}

async function dueCount({ database }: RefreshCluster): Promise<number> {
  const sql = 'select count(*) as due from account_token where due_at <= now()'
  return Number((await queryOne<{ readonly due: string }>(database.pool, sql, {}))?.due ?? 0)
}

await storm()
