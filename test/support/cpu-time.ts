import { readFileSync } from 'node:fs'

/** CPU time that the work took on this thread, in milliseconds. Unlike time on the clock, it is hardly more on a busy machine. */
export function cpuMsOf(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

/** Of `times` in proc(5): clock ticks are hundredths of a second wherever Node.js runs. */
const MS_PER_TICK = 10

/** CPU time of this process so far and, on Linux, of those that it started and that ended, in milliseconds. */
export function processCpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000 + endedChildrenMs()
}

function endedChildrenMs(): number {
  if (process.platform !== 'linux') return 0
  const stat = readFileSync('/proc/self/stat', 'utf8')
  // The name in parentheses may hold spaces; after it `cutime` and `cstime` are the 14th and 15th values.
  const values = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(values[13]) + Number(values[14])) * MS_PER_TICK
}
