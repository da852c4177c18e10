/** Process of a tenant that sends many requests at once; its answers are timed apart from those of the tenant that is measured. */

import { Agent, request } from 'node:http'
import type { Answered, Burst } from './burst.ts'

const agent = new Agent({ keepAlive: true, maxSockets: 400 })

process.on('message', async (burst: Burst) => {
  const answers = await Promise.all(Array.from({ length: burst.count }, (_, index) => send(burst, index)))
  process.send?.(answers)
})

function send({ url, verb, headers, body }: Burst, index: number): Promise<Answered> {
  const text = body.replaceAll('%N%', String(index))
  return new Promise((resolve) => {
    const sent = request(url, { agent, method: verb, headers }, (response) => {
      response.resume()
      response.on('close', () => resolve(answered(response.statusCode ?? 0)))
    })
    // The server may answer and close while a body that it does not want is on its way.
    sent.on('error', () => resolve(answered(0)))
    sent.end(text)
  })
}

function answered(status: number): Answered {
  return { status, atMs: performance.timeOrigin + performance.now() }
}
