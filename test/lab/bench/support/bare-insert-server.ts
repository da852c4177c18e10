/** The floor of inbound as a process of its own: node:http, the body, one prepared insert, 200. Prints its port. */

import { createServer } from 'node:http'
import { Pool } from 'pg'
import { newId } from '../../../../src/foundation/base/index.ts'

const [host, poolSize] = process.argv.slice(2)
const pool = new Pool({ host, port: 5432, user: 'patchbay', database: 'postgres', max: Number(poolSize) })

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  await pool.query({
    name: 'insert',
    text: 'insert into bench_inbound (id, headers, body) values ($1, $2, $3)',
    values: [newId(), JSON.stringify(request.headers), Buffer.concat(chunks)],
  })
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 2 })
  response.end('{}')
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') process.stdout.write(`${address.port}\n`)
})
