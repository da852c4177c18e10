/**
 * `npm run fuzz [minutes] [--seed N]`: mutated inputs for every reader of what others wrote; see "Fuzzing" in `test/README.md`.
 *
 * The inputs are read in a worker thread, so that one that never ends is found too.
 */

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { costOf, outcomeOf } from '../../laws/untrusted/measure.ts'
import type { Reader } from '../../laws/untrusted/reader.ts'
import { READERS } from '../../laws/untrusted/registry.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { mulberry32 } from '../faults/support/seeded-random.ts'
import { mutate, shrink } from './mutate.ts'

const MINUTES_DEFAULT = 1
const CPU_MS_MAX = 1_000
/** Without a finished input for so long, one does not end. */
const HANG_MS = 20_000
const FAILURES_MAX = 10
const CORPUS = join(import.meta.dirname, 'corpus')

interface Order {
  readonly seed: number
  readonly minutes: number
}

/** What the worker thread tells: the input it is about to read, a failure, or the end. */
type News =
  | { readonly kind: 'begins'; readonly count: number; readonly reader: string; readonly input: string }
  | { readonly kind: 'failed'; readonly reader: string; readonly input: string; readonly why: string }
  | { readonly kind: 'ended'; readonly count: number }

if (isMainThread) await supervise()
else await fuzz(workerData as Order)

async function supervise(): Promise<void> {
  const { values, positionals } = parseArgs({ options: { seed: { type: 'string' } }, allowPositionals: true })
  const order: Order = {
    seed: values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed),
    minutes: Number(positionals[0] ?? MINUTES_DEFAULT),
  }
  process.stdout.write(
    `${JSON.stringify({ name: 'fuzz-seed', value: order.seed, unit: '', target: 'any', ok: true })}\n`,
  )
  const worker = new Worker(import.meta.filename, { workerData: order })
  const failures = new Set<string>()
  let latest: News | undefined
  let count = 0
  let hang: NodeJS.Timeout | undefined
  worker.on('message', (news: News) => {
    clearTimeout(hang)
    if (news.kind === 'failed') failures.add(keep(news.reader, news.input, news.why))
    else count = news.count
    latest = news
    hang = setTimeout(() => {
      if (latest?.kind === 'begins') failures.add(keep(latest.reader, latest.input, `takes longer than ${HANG_MS} ms`))
      void worker.terminate()
    }, HANG_MS)
  })
  await once(worker, 'exit')
  clearTimeout(hang)
  reportAtLeast('fuzz-inputs', count, 'inputs', 1)
  reportAtMost('fuzz-failures', failures.size, 'inputs', 0)
}

/** Writes an input that fails into the corpus. @returns its name */
function keep(reader: string, input: string, why: string): string {
  const name = `${reader.replace(/\W+/g, '-')}-${createHash('sha256').update(input).digest('hex').slice(0, 8)}.json`
  mkdirSync(CORPUS, { recursive: true })
  writeFileSync(
    join(CORPUS, name),
    `${JSON.stringify({ reader, why: why.split('    at ', 1)[0]?.trim(), input }, null, 2)}\n`,
  )
  process.stderr.write(`${reader}: ${why}; kept as corpus/${name}\n`)
  return name
}

async function fuzz({ seed, minutes }: Order): Promise<void> {
  const random = mulberry32(seed)
  const draw = (below: number) => Math.floor(random() * below)
  const pools = READERS.map((reader) => [
    ...reader.seeds,
    ...Object.values(reader.attacks).map((make) => make(Math.min(512, reader.lengthMax))),
  ])
  const end = Date.now() + minutes * 60_000
  const reported = new Map<string, number>()
  let count = 0
  for (; Date.now() < end; count++) {
    const at = draw(READERS.length)
    const [reader, pool] = [READERS[at], pools[at] ?? []]
    if (reader === undefined) continue
    const pick = () => pool[draw(pool.length)] ?? ''
    const input = mutate(draw, pick(), pick()).slice(0, reader.lengthMax)
    tell({ kind: 'begins', count, reader: reader.name, input })
    const why = await failureOf(reader, input)
    if (why === undefined || (reported.get(reader.name) ?? 0) >= FAILURES_MAX) continue
    reported.set(reader.name, (reported.get(reader.name) ?? 0) + 1)
    const shortest = await shrink(input, async (shorter) => (await failureOf(reader, shorter)) !== undefined)
    tell({ kind: 'failed', reader: reader.name, input: shortest, why: (await failureOf(reader, shortest)) ?? why })
  }
  tell({ kind: 'ended', count })
  process.exit(0)
}

/** What is wrong with how the reader takes the input. */
async function failureOf(reader: Reader, input: string): Promise<string | undefined> {
  const start = performance.now()
  const outcome = await outcomeOf(reader, input)
  const isSlow = performance.now() - start > CPU_MS_MAX
  if (outcome.kind === 'defect')
    return outcome.error instanceof Error ? String(outcome.error.stack).split('\n', 2).join(' ') : String(outcome.error)
  if (outcome.kind === 'read' && reader.isFaithful?.(input, outcome.result) === false)
    return 'is read as something else'
  if (!isSlow) return undefined
  // The wait may have been for other processes.
  const { longestMs } = await costOf(reader, input)
  return longestMs > CPU_MS_MAX ? `takes ${longestMs.toFixed(0)} ms` : undefined
}

function tell(news: News): void {
  parentPort?.postMessage(news)
}
