/**
 * A webhook receiver as a process: accepts everything at once and watches the clock.
 *
 * Forked: sends its address, then for every run `RunReceived` when `completed` or `failed` has arrived.
 */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One run as its receiver saw it. */
export interface RunReceived {
  /** From `started` to `completed`. */
  readonly seconds: number
  readonly requests: number
  readonly bytes: number
  /** The body of the last event. */
  readonly last: string
}

/** The event is named at the beginning of a body. */
const HEAD_BYTES = 200

let startedMs = 0
let requests = 0
let bytes = 0

function note(body: Buffer): void {
  const head = body.toString('latin1', 0, HEAD_BYTES)
  if (head.includes('"sync_job_run:started"')) [startedMs, requests, bytes] = [performance.now(), 0, 0]
  requests++
  bytes += body.byteLength
  if (!/"sync_job_run:(?:completed|failed)"/.test(head)) return
  const seconds = (performance.now() - startedMs) / 1_000
  process.send?.({ seconds, requests, bytes, last: body.toString() } satisfies RunReceived)
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    response.writeHead(204).end()
    note(Buffer.concat(chunks))
  })
})
server.listen(0, '127.0.0.1', () => process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
