import { setTimeout as sleep } from 'node:timers/promises'
import { type RunningProduct, removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { expectJson } from '../../support/rest.ts'
import { type Seed, seedChain } from '../../support/seed.ts'
import { Peer } from './support/peer.ts'
import { reportAtLeast, reportBaseline } from './support/report.ts'
import type { RunReceived } from './support/sync-receiver-main.ts'

/** `BENCH_RECORDS` for a short form. */
const RECORDS = Number(process.env.BENCH_RECORDS ?? 100_000)
const PAGE_SIZES = [100, 1_000]
const RATIO_MIN = 0.5
/** At the larger page. */
const RECORDS_PER_SECOND_MIN = 30_000
const ROUNDS = 3
const ACTIVE_POLL_MS = 100

/** Records of a list brought to a webhook by the whole product, against a hand-written loop of fetch and POST. */
export async function run(): Promise<void> {
  await using upstream = new Peer<string>('sync-upstream-main.ts', [String(RECORDS)])
  await using receiver = new Peer<string & RunReceived>('sync-receiver-main.ts')
  const [upstreamUrl, receiverUrl] = [await upstream.next(), await receiver.next()]
  const dataDir = temporaryDataDir()
  const product = await startProduct({
    dataDir,
    environment: { PATCHBAY_RATE_LIMIT: '0', PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' },
  })
  try {
    for (const size of PAGE_SIZES) {
      const seed = await seedPages(product, { upstreamUrl, receiverUrl, size })
      await using floor = new Peer<number>('sync-baseline-main.ts', [upstreamUrl, receiverUrl, String(size)])
      await compare(size, {
        floor: () => floorSeconds(floor),
        product: () => productSeconds(product, seed, receiver),
      })
    }
  } finally {
    await product.stop()
    removeDataDir(dataDir)
  }
}

/** Median of interleaved rounds, after one that warms both up. */
async function compare(
  size: number,
  subjects: { readonly floor: () => Promise<number>; readonly product: () => Promise<number> },
): Promise<void> {
  const seconds = { floor: [] as number[], product: [] as number[] }
  for (let round = 0; round <= ROUNDS; round++)
    for (const name of ['floor', 'product'] as const) {
      const taken = await subjects[name]()
      if (round > 0) seconds[name].push(taken)
    }
  const [floor, product] = [RECORDS / medianOf(seconds.floor), RECORDS / medianOf(seconds.product)]
  const name = `sync-webhook/page-${size}`
  reportBaseline(`${name}/floor`, floor, 'records/s')
  if (size === PAGE_SIZES.at(-1)) reportAtLeast(name, product, 'records/s', RECORDS_PER_SECOND_MIN)
  else reportBaseline(name, product, 'records/s')
  reportAtLeast(`${name}/ratio`, product / floor, 'x floor', RATIO_MIN)
}

async function floorSeconds(floor: Peer<number>): Promise<number> {
  const taken = floor.next()
  floor.go()
  return await taken
}

async function productSeconds(product: RunningProduct, seed: Seed, receiver: Peer<RunReceived>): Promise<number> {
  const received = receiver.next()
  const token = product.bootstrap.environment_token
  await expectJson('POST', `${product.url}/sync-job-run`, token, {
    sync_job_id: seed.syncJobId,
    integrated_account_id: seed.integratedAccountId,
    webhook_id: seed.webhookId,
    ignore_previous_run: true,
  })
  const { seconds, last } = await received
  const [stats] = JSON.parse(last).payload.resource_stats
  if (stats?.delivered !== RECORDS) throw new Error(`not everything arrived: ${last}`)
  return seconds
}

/** The chain for one page size, with its account active. */
async function seedPages(
  product: RunningProduct,
  { upstreamUrl, receiverUrl, size }: { upstreamUrl: string; receiverUrl: string; size: number },
): Promise<Seed> {
  const { url, bootstrap } = product
  const token = bootstrap.environment_token
  const seed = await seedChain({
    url,
    teamToken: bootstrap.team_token,
    environmentToken: token,
    environmentId: bootstrap.environment_id,
    upstreamUrl,
    webhookUrl: `${receiverUrl}/hook`,
    name: `contacts-${size}`,
  })
  const override = { pagination: { config: { limit: size } } }
  await expectJson('PATCH', `${url}/environment-integration/${seed.environmentIntegrationId}`, token, { override })
  for (;;) {
    const { status } = await expectJson('GET', `${url}/integrated-account/${seed.integratedAccountId}`, token)
    if (status === 'active') return seed
    await sleep(ACTIVE_POLL_MS)
  }
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}
