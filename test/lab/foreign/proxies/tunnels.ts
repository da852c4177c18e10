import { equal, match } from 'node:assert/strict'
import { addAccount, type Call, type Installation } from './installation.ts'
import { send } from './send.ts'
import { startTinyproxy } from './servers.ts'

/** Calls of a product whose HTTPS_PROXY is tinyproxy: in a tunnel, past it, and to an address that it may not reach. */
export async function callThroughTunnel({ secure, forwardPort, upstream, authority }: Installation): Promise<string> {
  const ca = authority.certificate
  const token = secure.bootstrap.environment_token
  const port = (host: string) => Number(host.split(':')[1])
  await using proxy = await startTinyproxy(forwardPort, port(upstream.tunnelled))
  const call: Call = async (method, path, bearer, body) => {
    const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' }
    const answer = await send(`${secure.url}${path}`, { method, headers, body: JSON.stringify(body), ca })
    if (answer.status !== 200) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.body}`)
    return JSON.parse(answer.body)
  }
  const list = async (name: string, url: string, host?: string) => {
    const account = await addAccount(call, secure, { name, url, ...(host === undefined ? {} : { host }) })
    return await send(`${secure.url}/proxy/contacts?integrated_account_id=${account}`, {
      headers: { authorization: `Bearer ${token}` },
      ca,
    })
  }
  const tunnels = (host: string) => proxy.output().split(`CONNECT ${host}`).length - 1

  equal((await list('tunnelled', `https://${upstream.tunnelled}`)).status, 200)
  equal(tunnels(upstream.tunnelled), 1)
  equal((await list('direct', `https://${upstream.direct}`)).status, 200)
  equal(tunnels(upstream.direct), 0)
  match((await list('internal', 'https://{{host}}', '10.0.0.1')).body, /EGRESS_BLOCKED/)
  equal(tunnels('10.0.0.1'), 0)
  return 'one call in a tunnel, one of NO_PROXY past it, an internal address blocked'
}
