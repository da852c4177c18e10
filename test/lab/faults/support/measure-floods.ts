import { removeDataDir, startProduct, temporaryDataDir } from '../../../support/product.ts'
import { reportAtLeast, reportAtMost } from '../../bench/support/report.ts'
import { bodyFloods, type FloodResult, residentMib } from './body-floods.ts'

/**
 * The bodies themselves (64 MiB) and what is decompressed of them (16 MiB), the heaps of two threads that parse, and what V8 has not
 * collected yet: far below the gigabytes that floods without budgets take, and not more after the last one than after the first ones.
 */
const FLOOD_MIB_MAX = 768
/** A call of another tenant, beside a hundred bodies that arrive at once, over one that is made alone. */
const SLOWDOWN_MAX = 100
/**
 * What may stay: pages that the allocator keeps for the next allocations, which are neither of the heap (70 MiB used, as before the
 * floods) nor of buffers (30 MiB). A second round of floods has to fit into them.
 */
const KEPT_MIB_MAX = 512
/** How long the memory of a flood may stay: threads that parse stop after 30 s without work, and V8 returns its heap. */
const RETURN_MS_MAX = 90_000

/** Requests without a token, whose bodies are as expensive as can be. */
export async function measureFloods(): Promise<void> {
  const dataDir = temporaryDataDir()
  const environment = {
    PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
    PATCHBAY_RATE_LIMIT: '0',
    PATCHBAY_RATE_LIMIT_ADDRESS: '0',
  }
  const product = await startProduct({ dataDir, environment })
  const pid = product.child.pid ?? 0
  try {
    const before = residentMib(pid)
    const results: FloodResult[] = []
    for await (const result of bodyFloods(product, 'http://127.0.0.1:9')) results.push(result)
    const steepest = results.reduce((most, each) => (each.growthMib > most.growthMib ? each : most))
    const slowest = results.reduce((most, each) => (each.slowdown > most.slowdown ? each : most))
    process.stderr.write(`most memory: ${steepest.what}; slowest beside: ${slowest.what}\n`)
    const wrong = results.filter(({ undocumented }) => undocumented.length > 0)
    for (const { what, undocumented } of wrong)
      process.stderr.write(`${what}: answered ${[...new Set(undocumented)]}\n`)
    for (const end = Date.now() + RETURN_MS_MAX; Date.now() < end && residentMib(pid) - before > KEPT_MIB_MAX; )
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    reportAtLeast('stall-floods', results.length, 'floods of 100 bodies', 150)
    reportAtMost('stall-flood-memory', steepest.growthMib, 'MiB', FLOOD_MIB_MAX)
    reportAtMost('stall-flood-memory-after', residentMib(pid) - before, 'MiB', KEPT_MIB_MAX)
    reportAtMost('stall-flood-slowdown', slowest.slowdown, 'times a call alone', SLOWDOWN_MAX)
    reportAtMost('stall-flood-errors', wrong.length, 'floods with an undocumented answer', 0)
  } finally {
    await product.stop()
    removeDataDir(dataDir)
  }
}
