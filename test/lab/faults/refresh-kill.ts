/**
 * An API server is killed by SIGKILL between the answer of a token endpoint and the commit of the new token, 50 times
 * (`PATCHBAY_FAULTS_KILLS` for more); about three minutes. Every second kill waits until the commit is about to happen, the
 * others come a few milliseconds after the answer. Half of the accounts have refresh tokens for one use: the new one is lost
 * with the process, and the account must say so. The others must simply work again.
 */

import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { execute, query, queryOne, type Tx } from '../../../src/foundation/database/database.ts'
import type { RunningProduct } from '../../support/product.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from '../bench/support/report.ts'
import { RefreshCluster } from './support/refresh-cluster.ts'
import { sendJson, startTokenEndpoint } from './support/token-endpoint.ts'

const KILLS = Number(process.env.PATCHBAY_FAULTS_KILLS ?? 50)
const KILL_AFTER_MS_MAX = 15
const POLL_MS = 2
const WAIT_MS_MAX = 10_000
const LOST = /interrupted before its response was stored/

/** Refresh tokens of one account at the third party. */
class Grant {
  readonly isSingleUse: boolean
  readonly #tokens: string[]

  constructor(name: string, isSingleUse: boolean) {
    this.isSingleUse = isSingleUse
    this.#tokens = [`${name} 0`]
  }

  get first(): string {
    return this.#tokens[0] ?? ''
  }

  isValid(token: string): boolean {
    return this.isSingleUse ? token === this.#tokens.at(-1) : this.#tokens.includes(token)
  }

  /** Replaces the newest token. */
  rotate(): string {
    const token = `${this.first.split(' ')[0]} ${this.#tokens.length}`
    this.#tokens.push(token)
    return token
  }
}

/** The third party: rotates refresh tokens, and lets a script step in before it answers. */
class Provider {
  readonly grants = new Map<string, Grant>()
  /** Called once, with the next answer that grants a token. */
  beforeAnswer: (() => Promise<void>) | undefined
  /** Called once, after that answer was handed to the kernel. */
  afterAnswer: (() => void) | undefined

  async answer(refreshToken: string, response: ServerResponse): Promise<void> {
    const grant = this.grants.get(refreshToken.split(' ')[0] ?? '')
    if (grant?.isValid(refreshToken) !== true) return sendJson(response, 400, { error: 'invalid_grant' })
    const refresh_token = grant.rotate()
    await this.beforeAnswer?.()
    const answered = once(response, 'finish')
    sendJson(response, 200, { access_token: `access ${refresh_token}`, refresh_token, expires_in: 3600 })
    await answered
    this.afterAnswer?.()
  }
}

/** How an account came out of a kill. */
type Outcome = 'committed' | 'recovered' | 'lost-and-said' | 'lost-silently' | 'not-recovered'

async function kills(): Promise<void> {
  const provider = new Provider()
  await using endpoint = await startTokenEndpoint((token, response) => provider.answer(token, response))
  await using cluster = await RefreshCluster.start(1, endpoint)
  const [survivor] = cluster.servers
  if (survivor === undefined) throw new Error('no server was started')
  const outcomes: Outcome[] = []
  let victim = await cluster.startServer()
  for (let kill = 0; kill < KILLS; kill++) {
    const grant = new Grant(`grant${kill}`, kill % 4 < 2)
    provider.grants.set(`grant${kill}`, grant)
    const accountId = await cluster.addAccount(grant.first)
    await killInCommit(cluster, provider, victim, accountId, kill % 2 === 0)
    const [next, outcome] = await Promise.all([cluster.startServer(), outcomeOf(cluster, survivor, grant, accountId)])
    victim = next
    outcomes.push(outcome)
  }
  await victim.stop()
  const count = (outcome: Outcome) => outcomes.filter((each) => each === outcome).length
  reportAtLeast('refresh-kill/kills', KILLS, 'processes', 50)
  reportBaseline('refresh-kill/committed-before', count('committed'), 'accounts')
  reportAtLeast('refresh-kill/recovered', count('recovered'), 'accounts', 1)
  reportAtLeast('refresh-kill/lost-and-said', count('lost-and-said'), 'accounts', 1)
  reportAtMost('refresh-kill/lost-silently', count('lost-silently'), 'accounts', 0)
  reportAtMost('refresh-kill/not-recovered', count('not-recovered'), 'accounts', 0)
}

/** Makes the victim refresh the account's token, and kills it once the token endpoint has answered. */
async function killInCommit(
  cluster: RefreshCluster,
  provider: Provider,
  victim: RunningProduct,
  accountId: string,
  isHeld: boolean,
): Promise<void> {
  const gone = once(victim.child, 'exit')
  const held = isHeld ? await cluster.database.pool.transaction() : undefined
  provider.beforeAnswer = async () => {
    const sql = 'select 1 from account_token where integrated_account_id = :accountId for update'
    if (held !== undefined) await query(held as unknown as Tx, sql, { accountId })
  }
  provider.afterAnswer = () => {
    const ready = isHeld ? untilWaiting(cluster) : sleep(Math.random() * KILL_AFTER_MS_MAX)
    void ready.then(() => victim.child.kill('SIGKILL'))
  }
  const call = cluster.call(victim, accountId).catch(() => undefined)
  await gone
  await call
  provider.beforeAnswer = undefined
  provider.afterAnswer = undefined
  await held?.rollback()
}

/** Resolves when a statement waits for the row that is locked: the one that would store the token. */
async function untilWaiting({ database }: RefreshCluster): Promise<void> {
  const sql = `select pid from pg_stat_activity where wait_event_type = 'Lock' and query like '%account_token%'`
  for (const end = Date.now() + WAIT_MS_MAX; Date.now() < end; await sleep(POLL_MS))
    if ((await queryOne(database.pool, sql, {})) !== undefined) return
  throw new Error('no statement waits for the row of the token')
}

/** Lets the lease of the killed process expire, and asks for the account through another one. */
async function outcomeOf(
  cluster: RefreshCluster,
  survivor: RunningProduct,
  grant: Grant,
  accountId: string,
): Promise<Outcome> {
  const isCommitted = (await cluster.storedToken(accountId)).version > 1
  const sql = `update account_token set lease_expires_at = now() - interval '1 second' where integrated_account_id = :accountId and lease_id is not null`
  await execute(cluster.database.pool, sql, { accountId })
  const { status: answered } = await cluster.call(survivor, accountId)
  const { status, last_error } = await cluster.show(accountId)
  const isUsable = grant.isValid((await cluster.storedToken(accountId)).fields.refresh_token ?? '')
  if (status === 'active' && answered === 200 && isUsable) return isCommitted ? 'committed' : 'recovered'
  if (!grant.isSingleUse) return 'not-recovered'
  const isSaid =
    status === 'needs_reauth' && LOST.test(last_error) && (await cluster.lastCause(accountId)) === 'token_lost'
  return isSaid ? 'lost-and-said' : 'lost-silently'
}

await kills()
