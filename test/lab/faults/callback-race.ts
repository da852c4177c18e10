/**
 * A browser comes back from its consent twenty times at once, at four API servers: reloads, two tabs, a proxy that repeats. 50
 * times, about a minute. oidc-provider revokes the grant when a code is exchanged twice. Each round must exchange the code once and
 * connect one account; a reload afterwards must change nothing.
 */

import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { ConnectCluster } from './support/connect-cluster.ts'

const ROUNDS = Number(process.env.PATCHBAY_FAULTS_ROUNDS ?? 50)
const SERVERS = 4
const CALLBACKS = 20

async function race(): Promise<void> {
  await using cluster = await ConnectCluster.start(SERVERS)
  const { provider } = cluster
  let [callbacks, failed, wrongExchanges, wrongAccounts, notCompleted, wrongHistories] = [0, 0, 0, 0, 0, 0]
  for (let round = 0; round < ROUNDS; round++) {
    const tenantId = `round-${round}`
    const { id, browser, callback } = await cluster.begin(tenantId)
    const before = provider.exchanges
    const comeBack = async (index: number) => {
      const { pathname, search } = new URL(callback)
      const server = cluster.servers[index % SERVERS]
      const response = await browser.request(`${server?.url}${pathname}${search}`)
      callbacks++
      if (response.status !== 303) {
        failed++
        process.stderr.write(`${response.status} ${(await response.text()).slice(0, 500)}\n`)
      }
    }
    await Promise.all(Array.from({ length: CALLBACKS }, (_, index) => comeBack(index)))
    const { status, steps } = await cluster.settled(id)
    await comeBack(round)
    if (provider.exchanges - before !== 1) wrongExchanges++
    if ((await cluster.countAccounts(tenantId)) !== 1) wrongAccounts++
    if (status !== 'completed' || (await cluster.settled(id)).status !== 'completed') notCompleted++
    if (steps.filter(({ cause }) => cause === 'callback_received').length !== 1) wrongHistories++
  }
  reportAtLeast('callback-race/rounds', ROUNDS, 'rounds', 50)
  reportAtLeast('callback-race/callbacks', callbacks, 'callbacks', (CALLBACKS + 1) * ROUNDS)
  reportAtMost('callback-race/failed-callbacks', failed, 'callbacks', 0)
  reportAtMost('callback-race/rounds-without-exactly-one-exchange', wrongExchanges, 'rounds', 0)
  reportAtMost('callback-race/rounds-without-exactly-one-account', wrongAccounts, 'rounds', 0)
  reportAtMost('callback-race/rounds-not-completed', notCompleted, 'rounds', 0)
  reportAtMost('callback-race/rounds-without-exactly-one-row-of-history', wrongHistories, 'rounds', 0)
  reportAtMost('callback-race/refused-exchanges', provider.refused, 'exchanges', 0)
  reportAtMost('callback-race/revoked-grants', provider.revoked, 'grants', 0)
}

await race()
