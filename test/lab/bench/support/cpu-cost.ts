import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const NS_PER_US = 1_000

/** Processor time of the three parties of a call, microseconds. */
export interface CpuCost {
  readonly serverUs: number
  readonly databaseUs: number
  readonly clientUs: number
}

/** What the processes have used so far. @param serverPid absent: there is no server, the client sends statements itself */
export function usedCpu(serverPid: number | undefined, dataDir: string): CpuCost {
  const { user, system } = process.cpuUsage()
  return {
    serverUs: serverPid === undefined ? 0 : processUs(serverPid),
    databaseUs: databasePids(dataDir).reduce((sum, pid) => sum + processUs(pid), 0),
    clientUs: user + system,
  }
}

/** What was used between two moments, for each of the calls. */
export function costPerCall(before: CpuCost, after: CpuCost, calls: number): CpuCost {
  return {
    serverUs: (after.serverUs - before.serverUs) / calls,
    databaseUs: (after.databaseUs - before.databaseUs) / calls,
    clientUs: (after.clientUs - before.clientUs) / calls,
  }
}

/** Time of all threads, which Linux counts in nanoseconds; a thread or process that has ended counts nothing. */
function processUs(pid: number): number {
  const tasks = `/proc/${pid}/task`
  return list(tasks).reduce(
    (sum, task) => sum + Number(read(join(tasks, task, 'schedstat')).split(' ')[0]) / NS_PER_US,
    0,
  )
}

/** The postmaster of a data directory with its children: connections and background processes. */
function databasePids(dataDir: string): readonly number[] {
  const postmaster = Number(read(join(dataDir, 'postgres/data/postmaster.pid')).split('\n')[0])
  const children = read(`/proc/${postmaster}/task/${postmaster}/children`)
  return [postmaster, ...children.trim().split(' ').filter(Boolean).map(Number)]
}

function list(path: string): readonly string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
