/**
 * The floor of deliveries: a bare loop of undici that posts a body, so many at once, and waits for each response.
 *
 * `delivery-baseline-main.ts <url> <posts> <in flight>`, forked: after every message posts, then sends the seconds it took.
 */

import { Agent, request } from 'undici'

const [url = '', posts = '0', inFlight = '1'] = process.argv.slice(2)
const ENDPOINTS = 10
const body = JSON.stringify({ text: 'x'.repeat(1_000) })
const headers = { 'content-type': 'application/json' }
const dispatcher = new Agent({ connections: Number(inFlight) })

async function post(): Promise<number> {
  const beganMs = performance.now()
  let next = 0
  const loop = async () => {
    while (next < Number(posts)) {
      const response = await request(`${url}/floor/${next++ % ENDPOINTS}`, {
        method: 'POST',
        headers,
        body,
        dispatcher,
      })
      await response.body.dump()
    }
  }
  await Promise.all(Array.from({ length: Number(inFlight) }, loop))
  return (performance.now() - beganMs) / 1_000
}

process.on('message', async () => process.send?.(await post()))
process.send?.('ready')
