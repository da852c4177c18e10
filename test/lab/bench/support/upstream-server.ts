/**
 * The third party of the proxy benchmarks as a process of its own: `/records/<id>` answers 1 KB of JSON, `/blob` as many
 * bytes as its first argument says; what is posted to `/blob` is counted; `/contacts` is a list of 100. Prints its port.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

const CHUNK = Buffer.alloc(64 * 1024, 7)
const blobBytes = Number(process.argv[2] ?? 0)
const record = Buffer.from(
  JSON.stringify({ id: 'r-1', name: 'A record', state: 'open', note: 'x'.repeat(900), owner: { login: 'octocat' } }),
)

const contacts = Buffer.from(JSON.stringify({ results: Array.from({ length: 100 }, (_, index) => contact(index + 1)) }))

function contact(id: number) {
  return {
    id: String(id),
    createdAt: '2026-01-01T10:00:00.000Z',
    updatedAt: '2026-02-01T10:00:00.000Z',
    archived: false,
    properties: {
      firstname: `Ada ${id}`,
      lastname: 'Lovelace',
      jobtitle: 'Analyst',
      department: 'Research',
      email: `ada.${id}@example.com`,
      phone: '+44 20 7946 0000',
      mobilephone: '+44 7700 900000',
      address: '12 St James Square',
      city: 'London',
      state: 'Greater London',
      zip: 'SW1Y 4JH',
      country: 'GB',
      website: 'https://example.com',
      linkedin: 'https://social.example.com/ada',
      lifecyclestage: id % 3 === 0 ? 'customer' : 'marketingqualifiedlead',
      associatedcompanyid: String(id % 7),
      owner_id: String(id % 5),
      last_contacted: '2026-02-01T09:00:00Z',
      tags: 'vip;newsletter',
      score: id,
    },
  }
}

const server = createServer((request, response) => {
  if (request.url?.startsWith('/blob')) return request.method === 'POST' ? takeIn(request, response) : giveOut(response)
  if (request.url?.startsWith('/contacts')) {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': contacts.length })
    return void response.end(contacts)
  }
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': record.length })
  response.end(record)
})

function giveOut(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': blobBytes })
  let left = blobBytes
  const write = () => {
    while (left > 0) {
      const chunk = left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left)
      left -= chunk.length
      if (!response.write(chunk)) return
    }
    response.end()
  }
  response.on('drain', write)
  write()
}

function takeIn(request: IncomingMessage, response: ServerResponse): void {
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  request.on('end', () => {
    const body = JSON.stringify({ bytes })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  })
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') process.stdout.write(`${address.port}\n`)
})
