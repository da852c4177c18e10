/** The floor of the proxy benchmarks as a process of its own: node:http in front of undici, nothing between. Prints its port. */

import { createServer } from 'node:http'
import { Agent } from 'undici'

const [origin = ''] = process.argv.slice(2)
const agent = new Agent({ connections: 256, pipelining: 1 })

const server = createServer((request, response) => {
  const method = request.method ?? 'GET'
  const body = method === 'GET' ? null : request
  agent
    .stream(
      { origin, path: request.url ?? '/', method: method as 'GET', headers: { authorization: 'Bearer k' }, body },
      ({ statusCode, headers }) => {
        response.writeHead(statusCode, headers)
        return response
      },
    )
    .catch(() => response.destroy())
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') process.stdout.write(`${address.port}\n`)
})
