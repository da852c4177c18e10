import { deepEqual, equal } from 'node:assert/strict'
import { freePort } from '../../../support/product.ts'
import { secureServer } from './configurations.ts'
import { ADDRESS_LIMIT, type Installation } from './installation.ts'
import type { Row } from './rows.ts'
import { send } from './send.ts'
import { startHaproxy, startNginx } from './servers.ts'

/** A page that anybody may open, within the limit of the address. */
const PAGE = '/connect/hop'

/** Ways in which proxies name the client, and what each adds to its configuration. */
const NGINX: Readonly<Record<string, string>> = {
  'X-Forwarded-For': 'proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;',
  'X-Forwarded-For with a port': 'proxy_set_header X-Forwarded-For "$remote_addr:$remote_port";',
  'Forwarded with a port': `proxy_set_header Forwarded 'for="$remote_addr:$remote_port";proto=http';`,
}
const HAPROXY: Readonly<Record<string, string>> = {
  'option forwardfor': 'option forwardfor',
  Forwarded: 'http-request set-header Forwarded for=%[src]',
}

/** Which proxies, one for all ways, and the rows. */
export async function addressRows(
  installation: Installation,
): Promise<{ readonly start: () => Promise<AsyncDisposable>; readonly rows: readonly Row[] }> {
  const { secure, files } = installation
  const nginx = await withPorts(NGINX)
  const haproxy = await withPorts(HAPROXY)
  const ways = [
    ...nginx.map(({ name, port }) => ({ name: `nginx, ${name}`, port })),
    ...haproxy.map(({ name, port }) => ({ name: `HAProxy, ${name}`, port })),
  ]
  return {
    async start() {
      const stack = new AsyncDisposableStack()
      stack.use(await startNginx(nginx.map(({ also, port }) => secureServer(installation, port, also)).join('')))
      stack.use(
        await startHaproxy(
          haproxy
            .map(
              ({ also, port }) => `
listen way${port}
  bind 127.0.0.1:${port}
  ${also}
  server patchbay 127.0.0.1:${secure.port} ssl verify required ca-file ${files.authority} verifyhost localhost sni str(localhost)`,
            )
            .join(''),
        ),
      )
      return stack
    },
    rows: ways.map(({ name, port }, index) => [
      `${name}, the limit of each client`,
      () => exceedLimit(port, `127.1.${index}`),
    ]),
  }
}

async function withPorts(ways: Readonly<Record<string, string>>) {
  return await Promise.all(Object.entries(ways).map(async ([name, also]) => ({ name, also, port: await freePort() })))
}

/** Two clients exceed their limits, one of which says that it is another one each time; a third one is served. */
async function exceedLimit(port: number, network: string): Promise<string> {
  const url = `http://localhost:${port}${PAGE}`
  const ask = async (client: number, headers: Readonly<Record<string, string>> = {}) =>
    (await send(url, { localAddress: `${network}.${client}`, headers })).status
  const plain: number[] = []
  const forged: number[] = []
  for (let sent = 0; sent <= ADDRESS_LIMIT; sent++) {
    plain.push(await ask(2))
    forged.push(await ask(3, { 'x-forwarded-for': `203.0.113.${sent}` }))
  }
  const served = Array.from({ length: ADDRESS_LIMIT }, () => 200)
  deepEqual({ plain, other: await ask(4) }, { plain: [...served, 429], other: 200 })
  // Two headers that name different clients count as the proxy, with all others of that kind.
  equal(forged.at(-1), 429)
  return `${ADDRESS_LIMIT} of ${ADDRESS_LIMIT + 1} served, also with a forged address; another client served`
}
