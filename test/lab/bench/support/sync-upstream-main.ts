/**
 * A third party with one long list, as a process.
 *
 * `sync-upstream-main.ts <records>`, forked: sends its address. `GET /contacts?page=1&limit=100` answers
 * `{data: [...]}` with records of 320 bytes of JSON each; a page behind the end is empty.
 */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const RECORD_BYTES = 320
const RECORDS = Number(process.argv[2])

function recordText(id: number): string {
  const head = `{"id":${id},"email":"contact.${id}@example.com","created_at":"2026-01-01T00:00:00Z","note":"`
  return `${head}${'x'.repeat(RECORD_BYTES - head.length - 2)}"}`
}

function pageText(page: number, limit: number): string {
  const first = (page - 1) * limit
  const length = Math.max(0, Math.min(limit, RECORDS - first))
  return `{"data":[${Array.from({ length }, (_, index) => recordText(first + index)).join(',')}]}`
}

const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? '', 'http://upstream')
  const body = Buffer.from(pageText(Number(searchParams.get('page')), Number(searchParams.get('limit'))))
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.byteLength }).end(body)
})
server.listen(0, '127.0.0.1', () => process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
