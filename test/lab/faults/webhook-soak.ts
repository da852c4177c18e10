/**
 * Seven providers deliver webhooks for ten minutes (`PATCHBAY_SOAK_SECONDS` for less) while API servers and workers are killed
 * in turn by SIGKILL. Each provider behaves as the real one: its deadline, retries with growing gaps that begin while the first
 * request still runs, duplicates, handshakes inside the create call and again later, expiring subscriptions, and what it does
 * to receivers that fail or are slow. Their minutes, hours and days are shortened (`provider-doubles/units.ts`), their deadlines
 * are not. No provider may disable the receiver, no record may be lost, and none may have its effect twice.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { ProviderDouble } from '../../support/provider-doubles/double.ts'
import type { DoubleSubscription } from '../../support/provider-doubles/profile.ts'
import { PROFILES } from '../../support/provider-doubles/profiles.ts'
import { COMPRESSED } from '../../support/provider-doubles/units.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from '../bench/support/report.ts'
import { WebhookCluster } from './support/webhook-cluster.ts'

const SECONDS = Number(process.env.PATCHBAY_SOAK_SECONDS ?? 600)
const ACCOUNTS_PER_PROVIDER = 3
const READY_MS_MAX = 60_000
const EMIT_INTERVAL_MS = 1_000
const KILL_INTERVAL_MS = 20_000
const EFFECTS_MS_MAX = 120_000
const POLL_MS = 500

/** A provider with the accounts that it knows. */
interface Connected {
  readonly double: ProviderDouble
  readonly accountIds: readonly string[]
}

async function soak(): Promise<void> {
  await using cluster = await WebhookCluster.start()
  const doubles = await Promise.all(PROFILES.map((make) => ProviderDouble.start(make(COMPRESSED))))
  try {
    const connected: Connected[] = []
    for (const double of doubles) connected.push(await connect(cluster, double))
    await untilReady(connected)
    const stop = new AbortController()
    const working = [emitAll(connected, stop.signal), killInTurn(cluster, stop.signal)]
    await sleep(SECONDS * 1_000)
    stop.abort()
    const [, kills] = await Promise.all(working)
    for (const double of doubles) double.stop()
    await Promise.all(doubles.map((double) => double.settled()))
    await report(cluster, doubles, kills ?? 0)
    await endAll(cluster, connected)
  } finally {
    for (const double of doubles) await double[Symbol.asyncDispose]()
  }
}

async function connect(cluster: WebhookCluster, double: ProviderDouble): Promise<Connected> {
  const { profile } = double
  const installationId = await cluster.install(profile.name, double.definition(), profile.variables)
  const accountIds: string[] = []
  for (let count = 0; count < ACCOUNTS_PER_PROVIDER; count++)
    accountIds.push(await cluster.connect(installationId, { page_id: `${profile.name}-${count}` }))
  if (profile.isShared) await double.register(cluster.addressOf('environment-integration', installationId))
  else if (!profile.isOrdered)
    for (const id of accountIds) await double.register(cluster.addressOf('integrated-account', id))
  return { double, accountIds }
}

const expectedOf = ({ profile }: ProviderDouble) => (profile.isShared ? 1 : ACCOUNTS_PER_PROVIDER)

/** Workers have made the subscriptions that are ordered by requests. */
async function untilReady(connected: readonly Connected[]): Promise<void> {
  const isReady = () => connected.every(({ double }) => double.active.length === expectedOf(double))
  for (const end = Date.now() + READY_MS_MAX; !isReady(); await sleep(POLL_MS))
    if (Date.now() > end)
      throw new Error(
        `not subscribed: ${connected.map(({ double }) => `${double.profile.name} ${double.active.length}`)}`,
      )
}

/** Every subscription delivers about once a second; a shared one with items of all accounts. */
async function emitAll(connected: readonly Connected[], signal: AbortSignal): Promise<void> {
  for (let round = 0; !signal.aborted; round++) {
    for (const { double } of connected)
      for (const subscription of double.active) double.emit(subscription, itemsOf(double, subscription, round))
    await sleep(EMIT_INTERVAL_MS, undefined, { signal }).catch(() => {})
  }
}

function itemsOf({ profile: { name, isShared } }: ProviderDouble, { id }: DoubleSubscription, round: number) {
  const accounts = isShared ? ACCOUNTS_PER_PROVIDER : 1
  return Array.from({ length: accounts }, (_, account) => ({
    id: `${name}-${id}-${round}-${account}`,
    account: `${name}-${account}`,
  }))
}

/** @returns how many processes were killed */
async function killInTurn(cluster: WebhookCluster, signal: AbortSignal): Promise<number> {
  let kills = 0
  for (;;) {
    await sleep(KILL_INTERVAL_MS, undefined, { signal }).catch(() => {})
    if (signal.aborted) return kills
    if (kills % 2 === 0) await cluster.killServer(kills / 2)
    else await cluster.killWorker((kills - 1) / 2)
    kills += 1
  }
}

async function report(cluster: WebhookCluster, doubles: readonly ProviderDouble[], kills: number): Promise<void> {
  const wanted = doubles.flatMap(({ emitted }) => emitted.flatMap(({ delivery }) => delivery.items.map(({ id }) => id)))
  const effects = await untilEffects(cluster, wanted)
  const total = (key: keyof ProviderDouble['counts']) => doubles.reduce((sum, { counts }) => sum + counts[key], 0)
  const lost = wanted.filter((id) => !effects.has(id))
  const doubled = wanted.filter((id) => (effects.get(id) ?? 0) > 1)
  const disabled = doubles.flatMap((double) => double.disabled)
  for (const each of disabled) process.stderr.write(`${JSON.stringify(each)}\n`)
  const unsound = (await cluster.subscriptions()).filter(({ status }) => status === 'failed')
  for (const each of unsound) process.stderr.write(`${JSON.stringify(each)}\n`)
  reportBaseline('webhook-soak/records', wanted.length, 'records')
  reportBaseline('webhook-soak/attempts', total('attempts'), 'requests')
  reportBaseline('webhook-soak/handshakes', total('handshakes'), 'requests')
  reportBaseline('webhook-soak/renewals', total('renewals'), 'requests')
  reportAtLeast('webhook-soak/kills', kills, 'processes', Math.floor(SECONDS / 60))
  reportAtMost('webhook-soak/disabled', disabled.length, 'providers', 0)
  reportAtMost('webhook-soak/failed-subscriptions', unsound.length, 'subscriptions', 0)
  reportAtMost('webhook-soak/lost', lost.length, 'records', 0)
  reportAtMost('webhook-soak/doubled', doubled.length, 'records', 0)
  for (const { profile, counts } of doubles) {
    const own = (ids: readonly string[]) => ids.filter((id) => id.startsWith(`${profile.name}-`)).length
    process.stderr.write(`${profile.name} ${JSON.stringify({ ...counts, lost: own(lost), doubled: own(doubled) })}\n`)
  }
}

/** What was accepted is processed by workers a little later. */
async function untilEffects(cluster: WebhookCluster, wanted: readonly string[]) {
  for (const end = Date.now() + EFFECTS_MS_MAX; ; await sleep(POLL_MS)) {
    const effects = await cluster.effects()
    if (wanted.every((id) => effects.has(id)) || Date.now() > end) return effects
  }
}

/** Deletes every account: the subscriptions that were ordered must be deleted at their providers. */
async function endAll(cluster: WebhookCluster, connected: readonly Connected[]): Promise<void> {
  const ordered = connected.filter(({ double }) => double.profile.isOrdered)
  for (const { accountIds } of ordered) for (const id of accountIds) await cluster.delete(id)
  const left = () => ordered.reduce((sum, { double }) => sum + double.active.length, 0)
  for (const end = Date.now() + READY_MS_MAX; left() > 0 && Date.now() < end; ) await sleep(POLL_MS)
  reportAtMost('webhook-soak/left-at-providers', left(), 'subscriptions', 0)
}

await soak()
