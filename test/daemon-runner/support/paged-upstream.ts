import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Json } from '../../../src/base/index.ts'

/** A third party with lists, as `exampleDefinition` describes it. */
export interface PagedUpstream extends AsyncDisposable {
  readonly url: string
  /** Path and query of everything that was asked for. */
  readonly requests: readonly string[]
}

/** What it holds and how it answers. */
export interface UpstreamScript {
  /** All records of a list, by its path; `undefined` for a list that does not exist. */
  readonly records: (path: string) => readonly Json[] | undefined
  /** Is awaited before a page is answered. */
  readonly beforePage?: (path: string, page: number) => Promise<void> | void
}

/** Pages through lists by `page` and `limit`, with the total on each; a page behind the end is empty. */
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
