/**
 * A sync of many parents, each with a child and that with another, by the engine alone: pages come from memory and go
 * nowhere.
 *
 * `sync-parents-main.ts <parents>`, forked: sends `ParentsSynced` when all are done.
 */

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { systemClock } from '../../../../src/foundation/base/index.ts'
import { executeRun, type PageSource, type Sink, type SinkResult } from '../../../../src/sync/jobs/index.ts'

/** What a sync of many parents took. */
export interface ParentsSynced {
  readonly seconds: number
  /** What was alive at most. */
  readonly heapPeakMb: number
  /** What the process took at most. */
  readonly rssPeakMb: number
  /** JSON of the longest checkpoint that was looked at. */
  readonly checkpointBytes: number
  readonly fetched: readonly number[]
}

const PARENTS = Number(process.argv[2])
const PAGE = 1_000
/** Bytes of a record beside its id. */
const PADDING = 'x'.repeat(300)
/** Memory is looked at this often, in pages, and the checkpoint, in saves. */
const LOOK_EVERY = 20_000
const CHECKPOINT_LOOK_EVERY = 1_000
setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

let pages = 0
let saves = 0
let rssPeak = 0
let heapPeak = 0
let checkpointBytes = 0

function pageText(resource: string, page: number): string {
  const [first, length] = resource === 'parents' ? [page * PAGE, Math.min(PAGE, PARENTS - page * PAGE)] : [pages, 1]
  return JSON.stringify(Array.from({ length }, (_, index) => ({ id: first + index, name: 'n', text: PADDING })))
}

const source: PageSource = {
  async *pages({ resource }, state) {
    for (let page = Number(state?.page ?? 0); ; page++) {
      if (++pages % LOOK_EVERY === 0) {
        await new Promise(setImmediate)
        rssPeak = Math.max(rssPeak, process.memoryUsage.rss())
        collectGarbage()
        heapPeak = Math.max(heapPeak, process.memoryUsage().heapUsed)
      }
      const isLast = resource !== 'parents' || (page + 1) * PAGE >= PARENTS
      const records = JSON.parse(pageText(resource, page))
      const state = isLast ? null : { page: page + 1 }
      yield { kind: 'page', page: page + 1, records, state, stopReason: isLast ? 'no_cursor' : undefined }
      if (isLast) return
    }
  },
  parentPaths: () => [],
}
const accepted = (sequences: number) => async (): Promise<SinkResult> => ({ kind: 'accepted', sequences })
const sink: Sink = {
  started: accepted(0),
  page: accepted(1),
  listingError: accepted(1),
  ended: accepted(0),
}
const below = (parent: string) => ({ depends_on: parent, query: { of: `{{resources.${parent}.id}}` } })
const run = {
  resources: [
    { resource: 'parents', method: 'list' },
    { resource: 'children', method: 'list', ...below('parents') },
    { resource: 'grandchildren', method: 'list', persist: true, ...below('children') },
  ],
  ...({
    args: {},
    errorHandling: 'ignore',
    giveUpAfterSeconds: 0,
    nextTickAt: null,
    previousRunDates: [null, null, null],
    checkpoint: null,
    attempt: 1,
  } as const),
}

const account = { context: {}, environmentVariables: {} }
const from = performance.now()
let fetched: readonly number[] = []
await executeRun(
  { source, sink, clock: systemClock, random: Math.random, account },
  run,
  {
    save: async (checkpoint, stats) => {
      if (++saves % CHECKPOINT_LOOK_EVERY === 0)
        checkpointBytes = Math.max(checkpointBytes, JSON.stringify(checkpoint).length)
      fetched = stats.map((each) => each.fetched)
      return 'continue'
    },
    showWait: () => {},
  },
  new AbortController().signal,
)
const seconds = (performance.now() - from) / 1_000
const [heapPeakMb, rssPeakMb] = [heapPeak / 2 ** 20, rssPeak / 2 ** 20]
process.send?.({ seconds, heapPeakMb, rssPeakMb, checkpointBytes, fetched } satisfies ParentsSynced)
