import { readFileSync } from 'node:fs'

/**
 * CPU time that the work took on this thread, in milliseconds of a machine that does the reference work in `REFERENCE_MS`: unlike
 * time on the clock it is hardly more on a busy machine, and unlike plain CPU time on a slow one.
 */
export function cpuMsOf(work: () => unknown): number {
  return ofReferenceMachine(threadCpuMs(work))
}

/** Like `cpuMsOf`, for work that goes on in other threads of this process: decompression, requests to a server of this process. */
export async function cpuMsOfThreads(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  return ofReferenceMachine(milliseconds(process.cpuUsage(before)))
}

function ofReferenceMachine(cpuMs: number): number {
  return (cpuMs * REFERENCE_MS) / Math.min(...Array.from({ length: 3 }, () => threadCpuMs(referenceWork)))
}

function threadCpuMs(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  return milliseconds(process.threadCpuUsage(before))
}

function milliseconds({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1_000
}

const REFERENCE_MS = 10

/** Writes and reads a JSON document of a megabyte in all: objects and texts, as expressions and readers make them. */
function referenceWork(): void {
  const records = Array.from({ length: 2_000 }, (_, id) => ({ id, name: `item ${id}`, tags: ['x', 'y', String(id)] }))
  for (let round = 0; round < 10; round++) JSON.parse(JSON.stringify(records))
}

/** Of `times` in proc(5): clock ticks are hundredths of a second wherever Node.js runs. */
const MS_PER_TICK = 10

/** CPU time of this process so far and, on Linux, of those that it started and that ended, in milliseconds. */
export function processCpuMs(): number {
  return milliseconds(process.cpuUsage()) + endedChildrenMs()
}

function endedChildrenMs(): number {
  if (process.platform !== 'linux') return 0
  const stat = readFileSync('/proc/self/stat', 'utf8')
  // The name in parentheses may hold spaces; after it `cutime` and `cstime` are the 14th and 15th values.
  const values = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(values[13]) + Number(values[14])) * MS_PER_TICK
}
