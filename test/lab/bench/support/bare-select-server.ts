/** The floor of rpc-get as a process of its own: node:http, one prepared select, JSON. Prints its port. */

import { createServer } from 'node:http'
import { Pool } from 'pg'

const [host, environmentId, poolSize] = process.argv.slice(2)
const pool = new Pool({ host, port: 5432, user: 'patchbay', database: 'postgres', max: Number(poolSize) })

const server = createServer(async (request, response) => {
  const { rows } = await pool.query({
    name: 'get',
    text: `select t.*, s.* from sync_job_cron_trigger t left join trigger_schedule s on s.trigger_id = t.id
           where t.environment_id = $1 and t.id = $2`,
    values: [environmentId, request.url?.slice(1)],
  })
  const body = JSON.stringify(rows[0])
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response.end(body)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') process.stdout.write(`${address.port}\n`)
})
