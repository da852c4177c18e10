/** CPU time that the work took on this thread, in milliseconds. Unlike time on the clock, it is hardly more on a busy machine. */
export function cpuMsOf(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}
