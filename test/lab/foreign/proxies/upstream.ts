import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** What the third party sends first of an answer that it does not end. */
export const FIRST_EVENT = 'data: first\n\n'

/** A third party in this process, without TLS and with. */
export interface Upstream extends AsyncDisposable {
  /** `localhost` with the port of each. */
  readonly plain: string
  /** Called through a forward proxy. */
  readonly tunnelled: string
  /** Called although there is a forward proxy. */
  readonly direct: string
  /** Breaks off the answers that have begun. */
  breakOff(): void
}

/** Starts one. @param keys for `localhost` */
export async function startUpstream(keys: { readonly cert: string; readonly key: string }): Promise<Upstream> {
  const begun = new Set<() => void>()
  const serve = answer(begun)
  const servers = [createServer(serve), createTlsServer(keys, serve), createTlsServer(keys, serve)]
  const [plain = '', tunnelled = '', direct = ''] = await Promise.all(servers.map(listen))
  return {
    plain,
    tunnelled,
    direct,
    breakOff: () => {
      for (const destroy of begun) destroy()
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) {
        server.close()
        server.closeAllConnections()
      }
    },
  }
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `localhost:${(server.address() as AddressInfo).port}`
}

function answer(begun: Set<() => void>): RequestListener {
  return async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://upstream')
    const json = (body: object) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (url.pathname === '/files') return json({ length: (await text(request)).length })
    if (url.pathname === '/contacts') return json({ data: url.searchParams.get('page') === '1' ? [{ id: 1 }] : [] })
    if (url.pathname === '/command')
      return response.writeHead(200, { 'x-accel-redirect': '/internal/', 'x-accel-buffering': 'yes' }).end('own')
    // Any other path is shown as it came.
    if (url.pathname !== '/events') return json({ path: request.url })
    begun.add(() => response.destroy())
    return response.writeHead(200, { 'content-type': 'text/event-stream' }).write(FIRST_EVENT)
  }
}
