import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ReceivedPage } from './delivery-checker.ts'

/** A third party with one list, and a receiver that accepts and remembers everything. */
export interface PageEndpoints extends AsyncDisposable {
  readonly upstreamUrl: string
  readonly receiverUrl: string
  /** Every page of records in the order in which it came. */
  readonly pages: readonly ReceivedPage[]
}

/** How the list behaves. */
export interface ListShape {
  readonly records: number
  /** Reading a page takes between these two. */
  readonly delayMs: readonly [number, number]
  /** Accepting one takes between these two, from when it is remembered until it is answered. */
  readonly acceptMs: readonly [number, number]
}

/** Starts both in this process; the list answers `/contacts?page=1&limit=100` with `{data: [{id, name}, …]}`. */
export async function startPageEndpoints(shape: ListShape): Promise<PageEndpoints> {
  const pages: ReceivedPage[] = []
  const upstream = await listen((request, response) => void answerPage(shape, request, response))
  const receiver = await listen((request, response) => void receive(shape, pages, request, response))
  return {
    pages,
    upstreamUrl: urlOf(upstream),
    receiverUrl: `${urlOf(receiver)}/hook`,
    async [Symbol.asyncDispose]() {
      for (const server of [upstream, receiver]) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    },
  }
}

async function answerPage(
  { records, delayMs }: ListShape,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { searchParams } = new URL(request.url ?? '', 'http://upstream')
  const [page, limit] = [Number(searchParams.get('page')), Number(searchParams.get('limit'))]
  const first = (page - 1) * limit
  const length = Math.max(0, Math.min(limit, records - first))
  const data = Array.from({ length }, (_, index) => ({ id: first + index, name: `contact ${first + index}` }))
  await sleepBetween(delayMs)
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }))
}

async function receive(
  { acceptMs }: ListShape,
  pages: ReceivedPage[],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    return // the sender was killed in the middle of the page
  }
  const { event, payload } = JSON.parse(Buffer.concat(chunks).toString())
  if (event === 'sync_job_run:record')
    pages.push({
      runId: payload.sync_job_run_id,
      sequence: payload.sequence,
      content: createHash('sha256').update(JSON.stringify(payload.records)).digest('base64'),
      records: payload.records.map(({ id }: { readonly id: number }) => id),
    })
  await sleepBetween(acceptMs)
  response.writeHead(204).end()
}

async function sleepBetween([least, most]: readonly [number, number]): Promise<void> {
  await sleep(least + Math.random() * (most - least))
}

async function listen(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<Server> {
  const server = createServer(handle)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
