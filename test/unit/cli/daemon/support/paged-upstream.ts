import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Json } from '../../../../../src/foundation/json/index.ts'

/** An upstream with paged lists, as `exampleDefinition` describes it. */
export interface PagedUpstream extends AsyncDisposable {
  readonly url: string
  /** Path and query of all requests. */
  readonly requests: readonly string[]
}

/** Records of the upstream and hooks. */
export interface UpstreamScript {
  /** All records of the list at a path; `undefined` for 404. */
  readonly records: (path: string) => readonly Json[] | undefined
  /** Awaited before a page is sent. */
  readonly beforePage?: (path: string, page: number) => Promise<void> | void
}

/** Serves lists by `page` and `limit`, with the total on each page; pages after the last one are empty. */
export async function startPagedUpstream({ records, beforePage }: UpstreamScript): Promise<PagedUpstream> {
  const requests: string[] = []
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://upstream')
    requests.push(request.url ?? '')
    const [page, limit] = [Number(searchParams.get('page')), Number(searchParams.get('limit'))]
    await beforePage?.(pathname, page)
    const all = records(pathname)
    const data = all?.slice((page - 1) * limit, page * limit)
    response.writeHead(data === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(data === undefined ? { message: 'no such list' } : { data, total: all?.length }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
