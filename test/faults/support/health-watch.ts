import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

const PAUSE_MS = 2

/** Asks `/healthz` over and over from a thread of its own, so that the load's own work does not count as a wait. */
export async function startHealthWatch(url: string): Promise<{ stop(): Promise<number> }> {
  const worker = new Worker(import.meta.filename, { workerData: url })
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

if (!isMainThread && typeof workerData === 'string') await watch(`${workerData}/healthz`)

async function watch(url: string): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let isOver = false
  let longestMs = 0
  await ask(url, agent)
  parentPort?.once('message', () => {
    isOver = true
  })
  parentPort?.postMessage('ready')
  while (!isOver) {
    const start = performance.now()
    await ask(url, agent)
    longestMs = Math.max(longestMs, performance.now() - start)
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  parentPort?.postMessage(longestMs)
}

function ask(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => response.resume().once('end', resolve)).once('error', reject)
  })
}
