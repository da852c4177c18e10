/**
 * Looks for inputs that hold the event loop: every reader of the registry gets its attacks at growing lengths, then a
 * server process gets them over HTTP while `/healthz` is asked.
 *
 * The target: nothing that others wrote holds the event loop for more than 100 ms, and no cost grows faster than its input.
 * Three parts (`STALL_PARTS=readers,server,floods`), none of which fails because the machine has other work to do:
 *
 * Readers: Every attack of the registry (`test/laws/untrusted/registry.ts`), at the longest input that reaches its reader. The
 * figure (`stall-turn`) is processor time of the thread between two turns of the event loop. Processor time does not contain
 * the time in which the kernel ran something else, but a shared cache and a sibling hyper-thread do slow it down: expect up to
 * twice the figure on a busy machine. `stall-growth` compares it with that of a quarter of the length.
 *
 * Server: A real process gets the same attacks over HTTP, as requests and as answers of a third party, while `/healthz` is
 * asked every 2 ms from a thread of its own. The figure (`stall-healthz`) is the longest wait, less the run queue delay of the
 * server's main thread and of the asking thread: the time in which either was ready to run and had no processor (second number
 * of `/proc/<pid>/task/<tid>/schedstat`; where the kernel does not count it nothing is taken off). What remains contains
 * everything that the server did itself: its own computing, synchronous reads and writes, pauses of the garbage collector. Not
 * taken off, since the kernel does not tell it apart: waits of a collector's pause for helper threads that have no processor,
 * and time that the hypervisor took.
 *
 * In both parts a figure above the limit is measured again, and the least of three counts: what an input costs comes with every
 * reading, what a neighbour costs does not. The first reading also pays for compiling JavaScript. Work that is done once per
 * version, such as compiling a definition, is provoked anew by each request.
 *
 * Rows print when they are above the limit, with what they were.
 *
 * Floods: Every endpoint that reads bodies before authentication (`test/laws/untrusted/body-endpoints.ts`, from what the routes
 * say) gets a hundred of each worst body at once: compressed and plain lists, elements, fields, parts and text, slow bodies,
 * wrong lengths. The figures are resident memory above that before the first flood, and the slowest call of another tenant over
 * one that is made alone. What stays afterwards is mostly the arena of `malloc`, which the next flood uses
 * again.
 */

import { createServer } from 'node:http'
import { costOf, leastCost } from '../../laws/untrusted/measure.ts'
import type { Reader } from '../../laws/untrusted/reader.ts'
import { READERS } from '../../laws/untrusted/registry.ts'
import { type RunningProduct, removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { blockingRequests, startBlockingUpstream } from './support/blocking-requests.ts'
import { startHealthWatch } from './support/health-watch.ts'
import { measureFloods } from './support/measure-floods.ts'

/** As long as `/healthz` may wait. */
const STRETCH_MS_MAX = 100
/** Four times the length may take this many times as long: n log n and the noise of small figures pass, squares do not. */
const GROWTH_MAX = 9
/** Shorter readings say nothing about growth. */
const COMPARABLE_MS = 10
const ROUNDS = 3

const PARTS = { readers, server, floods: measureFloods }
/** `STALL_PARTS=readers,floods` measures these alone. */
const asked = process.env.STALL_PARTS?.split(',')
for (const [name, measure] of Object.entries(PARTS)) if (asked?.includes(name) ?? true) await measure()

async function readers(): Promise<void> {
  let stretch = { what: '', value: 0 }
  let growth = { what: '', value: 0 }
  let attacks = 0
  for (const reader of READERS)
    for (const [attack, make] of Object.entries(reader.attacks)) {
      attacks += 1
      const what = `${reader.name}, ${attack}`
      const longestMs = await longestTurnOf(reader, make(reader.lengthMax))
      if (longestMs > STRETCH_MS_MAX) process.stderr.write(`${what}: ${longestMs.toFixed(0)} ms in one turn\n`)
      if (longestMs > stretch.value) stretch = { what, value: longestMs }
      const factor = await growthOf(reader, make)
      if (factor > GROWTH_MAX)
        process.stderr.write(`${what}: four times the length costs ${factor.toFixed(1)} times as much\n`)
      if (factor > growth.value) growth = { what, value: factor }
    }
  reportAtLeast('stall-attacks', attacks, 'inputs', 150)
  process.stderr.write(`longest turn: ${stretch.what}; steepest growth: ${growth.what}\n`)
  reportAtMost('stall-turn', stretch.value, 'ms', STRETCH_MS_MAX)
  reportAtMost('stall-growth', growth.value, 'times for four times the length', GROWTH_MAX)
}

/** Measured again only when it is too long, since the first reading also pays for compiling. */
async function longestTurnOf(reader: Reader, input: string): Promise<number> {
  const { longestMs } = await costOf(reader, input)
  return longestMs <= STRETCH_MS_MAX ? longestMs : (await leastCost(reader, input, ROUNDS - 1)).longestMs
}

/** Cost at four times the length over the cost at the shortest length that can be compared; 0 when all are too cheap. */
async function growthOf(reader: Reader, make: (length: number) => string): Promise<number> {
  if (reader.isOffLoop === true) return 0
  for (let length = 1_024; length * 4 <= reader.lengthMax; length *= 2) {
    const once = await costOf(reader, make(length))
    if (once.longestMs < COMPARABLE_MS) continue
    const short = await leastCost(reader, make(length), ROUNDS)
    if (short.longestMs < COMPARABLE_MS) continue
    const long = await leastCost(reader, make(length * 4), 2)
    return long.longestMs / short.longestMs
  }
  return 0
}

/** Measured again only when it is too long: a stall comes with every request, a processor that was taken away does not. */
async function longestWaitDuring({ url, child }: RunningProduct, send: () => Promise<void>): Promise<number> {
  let leastMs = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS && leastMs > STRETCH_MS_MAX; round++) {
    const watch = await startHealthWatch(url, child.pid ?? 0)
    await send()
    leastMs = Math.min(leastMs, await watch.stop())
  }
  return leastMs
}

async function server(): Promise<void> {
  const dataDir = temporaryDataDir()
  const upstream = await startBlockingUpstream(createServer)
  const product = await startProduct({ dataDir, environment: { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' } })
  try {
    let answered = 0
    let worst = { what: 'nothing', value: 0 }
    for await (const { what, send } of blockingRequests(product, upstream.url)) {
      const waitMs = await longestWaitDuring(product, send)
      answered += 1
      if (waitMs > STRETCH_MS_MAX) process.stderr.write(`${what}: /healthz waited ${waitMs.toFixed(0)} ms\n`)
      if (waitMs > worst.value) worst = { what, value: waitMs }
    }
    process.stderr.write(`longest wait: ${worst.what}\n`)
    reportAtLeast('stall-requests', answered, 'requests', 12)
    reportAtMost('stall-healthz', worst.value, 'ms', STRETCH_MS_MAX)
  } finally {
    await product.stop()
    upstream.close()
    removeDataDir(dataDir)
  }
}
