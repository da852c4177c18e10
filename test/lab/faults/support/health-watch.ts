import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

const PAUSE_MS = 2

/**
 * Asks `/healthz` over and over from a thread of its own, so that the load's own work does not count as a wait.
 *
 * Run queue delay is taken off each wait: time in which the server's main thread, or the asking thread, was ready to run and
 * the kernel ran something else.
 *
 * @param pid of the server
 */
export async function startHealthWatch(url: string, pid: number): Promise<{ stop(): Promise<number> }> {
  const worker = new Worker(import.meta.filename, { workerData: { url: `${url}/healthz`, pid } satisfies Watched })
  await once(worker, 'message')
  return {
    /** @returns the longest wait for an answer, ms */
    stop: async () => {
      const answer = once(worker, 'message')
      worker.postMessage('stop')
      const [longestMs] = await answer
      await worker.terminate()
      return longestMs as number
    },
  }
}

interface Watched {
  readonly url: string
  readonly pid: number
}

if (!isMainThread && workerData !== null) await watch(workerData as Watched)

async function watch({ url, pid }: Watched): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const schedules = [`/proc/${pid}/task/${pid}/schedstat`, '/proc/thread-self/schedstat']
  const queuedMs = () => schedules.reduce((sum, path) => sum + runQueueDelayMs(path), 0)
  let isOver = false
  let longestMs = 0
  await ask(url, agent)
  parentPort?.once('message', () => {
    isOver = true
  })
  parentPort?.postMessage('ready')
  while (!isOver) {
    const start = performance.now() - queuedMs()
    await ask(url, agent)
    longestMs = Math.max(longestMs, performance.now() - queuedMs() - start)
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  parentPort?.postMessage(longestMs)
}

/** How long a thread has waited for a processor since it began; 0 where the kernel does not count it. See proc(5), schedstat. */
function runQueueDelayMs(path: string): number {
  try {
    return Number(readFileSync(path, 'latin1').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

function ask(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => response.resume().once('end', resolve)).once('error', reject)
  })
}
