/**
 * A receiver of deliveries as a process of its own: `/hang` never answers, everything else is accepted at once.
 *
 * `delivery-receiver-main.ts`, forked: sends its address, and after every message what it has received since the last.
 */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What the receiver has accepted since it was last asked. */
export interface DeliveriesReceived {
  readonly count: number
  /** Of the first and the last one, milliseconds since 1970. */
  readonly firstAt: number
  readonly lastAt: number
  /** From the event to its receipt, milliseconds, by the first segment of the path; of bodies with `created_at` alone. */
  readonly latencies: Readonly<Record<string, { readonly count: number; readonly p50: number; readonly p99: number }>>
}

const CREATED_AT = /"created_at":"([^"]+)"/
let [count, firstAt, lastAt] = [0, 0, 0]
let latencies = new Map<string, number[]>()

function receivedSinceLast(): DeliveriesReceived {
  const quantiles = [...latencies].map(([path, values]) => {
    values.sort((one, other) => one - other)
    const quantile = (share: number) => values[Math.floor(values.length * share)] ?? Number.NaN
    return [path, { count: values.length, p50: quantile(0.5), p99: quantile(0.99) }] as const
  })
  const received = { count, firstAt, lastAt, latencies: Object.fromEntries(quantiles) }
  ;[count, firstAt, lastAt] = [0, 0, 0]
  latencies = new Map()
  return received
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const path = request.url?.split('/')[1] ?? ''
    if (path === 'hang') return
    lastAt = Date.now()
    firstAt ||= lastAt
    count++
    const [, createdAt] = CREATED_AT.exec(Buffer.concat(chunks).toString()) ?? []
    if (createdAt !== undefined) {
      const values = latencies.get(path) ?? []
      values.push(lastAt - Date.parse(createdAt))
      latencies.set(path, values)
    }
    response.writeHead(204).end()
  })
})
server.listen(0, '127.0.0.1', () => process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
process.on('message', () => process.send?.(receivedSinceLast()))
// Also when the parent was killed.
process.on('disconnect', () => process.exit())
