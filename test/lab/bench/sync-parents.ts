import { Peer } from './support/peer.ts'
import { reportAtMost, reportBaseline } from './support/report.ts'
import type { ParentsSynced } from './support/sync-parents-main.ts'

/** `BENCH_PARENTS` for another form. */
const PARENTS = Number(process.env.BENCH_PARENTS ?? 1_000_000)
/** Of as many parents as a process needs to reach the size it keeps. */
const FLOOR_PARENTS = 50_000
/** Memory must not depend on the number of parents. */
const RATIO_MAX = 1.1
const CHECKPOINT_BYTES_MAX = 100 * 1024

/** Memory and speed of the engine over a million parents, three levels deep, against the same over fewer. */
export async function run(): Promise<void> {
  const [floor, measured] = [await synced(FLOOR_PARENTS), await synced(PARENTS)]
  reportBaseline('sync-parents/heap/floor', floor.heapPeakMb, 'MB')
  reportBaseline('sync-parents/heap', measured.heapPeakMb, 'MB')
  reportAtMost('sync-parents/heap/ratio', measured.heapPeakMb / floor.heapPeakMb, 'x floor', RATIO_MAX)
  reportBaseline('sync-parents/rss', measured.rssPeakMb, 'MB')
  reportAtMost('sync-parents/checkpoint', measured.checkpointBytes, 'bytes', CHECKPOINT_BYTES_MAX)
  reportBaseline('sync-parents/rate', PARENTS / measured.seconds, 'parents/s')
}

async function synced(parents: number): Promise<ParentsSynced> {
  await using peer = new Peer<ParentsSynced>('sync-parents-main.ts', [String(parents)])
  const answer = await peer.next()
  if (answer.fetched.some((fetched) => fetched !== parents)) throw new Error(`not all were read: ${answer.fetched}`)
  return answer
}
