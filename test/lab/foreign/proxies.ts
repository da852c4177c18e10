import { addressRows } from './proxies/addresses.ts'
import { renewCertificate } from './proxies/certificate.ts'
import { frontServer } from './proxies/configurations.ts'
import { CLIENT_WAYS, type Customer, LINK_WAYS, startCustomer } from './proxies/customer.ts'
import { addAccount, directly, type Installation, startInstallation } from './proxies/installation.ts'
import { showRows } from './proxies/rows.ts'
import { startNginx } from './proxies/servers.ts'
import { grpcRows, INTEGRATION, startFront, streamRows } from './proxies/streams.ts'
import { callThroughTunnel } from './proxies/tunnels.ts'

/**
 * Puts nginx, HAProxy and a forward proxy around products of their own: customers in Chromium, streams, gRPC, addresses of clients,
 * renewed certificates, tunnels. They wait for each other more than they compute: three rows at once.
 *
 * @returns whether everything passes as it should
 */
export async function testProxies(): Promise<boolean> {
  await using installation = await startInstallation()
  await using customer = await startCustomer(installation)
  const outcomes = await Promise.all([
    testFront(installation, customer),
    testOthers(installation),
    showRows([['nginx, a renewed certificate behind it', () => renewCertificate(installation)]]),
  ])
  return outcomes.every((isGood) => isGood)
}

/** nginx before a public address with a path: passed on, then removed. */
async function testFront(installation: Installation, customer: Customer): Promise<boolean> {
  const { plain, upstream } = installation
  const account = await addAccount(directly(plain), plain, { name: INTEGRATION, url: `http://${upstream.plain}` })
  const outcomes: boolean[] = []
  {
    await using _ = await startFront(installation)
    const everyWay = [...LINK_WAYS, ...CLIENT_WAYS]
    outcomes.push(await showRows(streamRows(installation, account)))
    outcomes.push(await showRows([['nginx that passes the path on, Chromium', () => customer.connect(everyWay)]]))
  }
  await using _ = await startNginx(frontServer(installation, `http://127.0.0.1:${plain.port}/`))
  outcomes.push(await showRows([['nginx that removes the path, Chromium', () => customer.connect(LINK_WAYS)]]))
  return outcomes.every((isGood) => isGood)
}

async function testOthers(installation: Installation): Promise<boolean> {
  const byGrpc = await showRows(await grpcRows(installation))
  const { start, rows } = await addressRows(installation)
  await using _ = await start()
  const byAddress = await showRows(rows)
  const byTunnel = await showRows([['a forward proxy', () => callThroughTunnel(installation)]])
  return byGrpc && byAddress && byTunnel
}
