import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

/** A load balancer as most are set up: health checks at an interval, connections kept, refused connections retried. */
export interface Balancer extends AsyncDisposable {
  readonly url: string
}

const CHECK_INTERVAL_MS = 100

/** Balances over servers on this machine, round robin; it asks each one's `/healthz`. */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const healthy = new Set<number>()
  const agent = new Agent({ keepAlive: true })
  const stop = new AbortController()
  const checks = ports.map((port) => checkRepeatedly(port, healthy, stop.signal))
  let turn = 0
  const server = createServer(async (incoming, outgoing) => {
    const body = await buffer(incoming)
    const candidates = [...healthy].sort()
    const start = turn++
    for (let tried = 0; tried < candidates.length; tried++) {
      const port = candidates[(start + tried) % candidates.length] ?? 0
      try {
        return await forward(agent, port, incoming, body, outgoing)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') continue
        return void outgoing.writeHead(502).end(String(error))
      }
    }
    outgoing.writeHead(503).end('no healthy server')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await Promise.all(checks)
      agent.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function checkRepeatedly(port: number, healthy: Set<number>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { connection: 'close' } }).catch(
      () => undefined,
    )
    if (answer?.status === 200) healthy.add(port)
    else healthy.delete(port)
    await answer?.body?.cancel()
    await sleep(CHECK_INTERVAL_MS, undefined, { signal }).catch(() => {})
  }
}

function forward(
  agent: Agent,
  port: number,
  { method, url, headers }: IncomingMessage,
  body: Buffer,
  outgoing: ServerResponse,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const { connection: _, ...passed } = headers
    const options = { agent, host: '127.0.0.1', port, method, path: url, headers: passed }
    const call = request(options, (answer) => {
      const { connection: __, 'keep-alive': ___, ...answered } = answer.headers
      outgoing.writeHead(answer.statusCode ?? 502, answered)
      answer.pipe(outgoing).once('close', resolve)
      answer.once('error', () => outgoing.destroy())
    })
    call.once('error', reject)
    call.end(body)
  })
}
