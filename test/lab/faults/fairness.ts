/**
 * Two tenants on one server: one sends 400 of its most expensive requests at once, for every RPC of the contract and for every
 * shared queue; the other one asks for a short list and for the same.
 *
 * The target: what one tenant asks for, however much, delays another by what is under way and not by what waits. Two tenants of
 * one server process; a process of its own sends 400 requests of the first at once, with the largest message that is valid
 * (`support/largest-messages.ts` fills what the contract's descriptors name), for every RPC, and the worst for queues that more
 * than an RPC reaches (`support/queue-attacks.ts`). Meanwhile the second tenant asks for a short list and for the same, one
 * after the other.
 *
 * `fairness-overtaken` is how many requests of the first were served while one of the second waited. In order of arrival that
 * is all of them; with shares it is what is under way at each of the few waits of a request (statements, turns of the event
 * loop). It counts answers and not time, so that another load of the machine hardly changes it; above the limit a contest is
 * held again, and the least of three counts. `fairness-probes-rejected` counts answers to the second tenant that it does not
 * get alone, and `fairness-failed` requests of the first that failed with 5xx: it gets its answer or 429. `fairness-slowdown`
 * and `fairness-memory-after` are reported without a target: the longest wait of a probe over the median of those without the
 * burst in the same run, and what the bursts left in the memory of the server. Probes are spaced by the units that they cost,
 * so that none exceeds the limit of its own token.
 *
 * `fairness-cost/<RPC>` is the processor time of one such call in the server, its database and its sandboxes, less what they
 * use without calls. The option `cost` of the RPC is chosen from it: 10 ms a unit, less the units of the body and of the
 * answer, for what tells ordinary use apart from abuse (a check of a definition of 190 KiB takes 100 to 160 ms: 10 units and 2
 * for the body). What is below 10 ms is one unit.
 *
 * `PATCHBAY_FAIRNESS=Try,List` measures only RPCs and queues whose names contain one of these.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { DescMethodUnary } from '@bufbuild/protobuf'
import { ApiTokenService } from '../../../gen/patchbay/v1/api_token_service_pb.ts'
import type { JsonObject } from '../../../src/foundation/json/index.ts'
import { costOf } from '../../../src/server/api/access.ts'
import { createClient, type Protocol, type Sender } from '../../support/client.ts'
import { OPERATIONS } from '../../support/operations.ts'
import { type RunningProduct, removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { createApiTenant, seedTenant } from '../../support/seeded-tenant.ts'
import { addHeldRun, type TenancyFixture } from '../../support/tenancy-matrix.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from '../bench/support/report.ts'
import { residentMib } from './support/body-floods.ts'
import {
  type Asked,
  ask,
  type Burst,
  Burster,
  type Contest,
  contest,
  cpuMsOfTree,
  type Probed,
} from './support/burst.ts'
import { inOrder, largestMessages } from './support/largest-messages.ts'
import { type QueueAttack, queueAttacks } from './support/queue-attacks.ts'

const BURST = 400
/** A probe may see so many requests of the other tenant served before its own: those under way, at each of its few waits. */
const OVERTAKEN_MAX = 60
/** Contests of one kind, of which the least counts, when the first is above the limit. */
const ROUNDS = 3
/** Calls of which the processor time is measured. */
const COSTED = 6
/** Their third parties are those of `queue-attacks.ts`. */
const PROXIED = ['ProxyService', 'UnifiedService']
const ID_MISSING = '0192d3a4-0000-7000-8000-000000000000'

const wanted = process.env.PATCHBAY_FAIRNESS?.split(',') ?? ['']
const isWanted = (name: string) => wanted.some((part) => name.includes(part))

const dataDir = temporaryDataDir()
const product = await startProduct({
  dataDir,
  environment: { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8', PATCHBAY_LOG_LEVEL: 'error' },
})
const burster = new Burster()
try {
  await measureAll(product)
} finally {
  burster[Symbol.dispose]()
  await product.stop()
  removeDataDir(dataDir)
}

async function measureAll({ url, bootstrap }: RunningProduct): Promise<void> {
  const app = {
    first: { teamToken: bootstrap.team_token },
    client: (wire: Protocol, sender: Sender = {}) => createClient(wire, url, sender),
  }
  const seed = async (): Promise<TenancyFixture> => {
    const tenant = await seedTenant(app, await createApiTenant(app))
    const made = await addHeldRun(app.client('connect', { token: tenant.environmentToken }), tenant)
    return { ...made, deliveryId: ID_MISSING, inboundEventId: ID_MISSING, callLogEntryId: ID_MISSING }
  }
  const [loud, quiet] = [await seed(), await seed()]
  const contests: [string, Contest][] = []
  const residentBefore = residentMib(product.child.pid ?? 0)
  const attacks = await queueAttacks(url, loud, quiet)
  for (const attack of attacks.list.filter(({ name }) => isWanted(name)))
    contests.push([attack.name, await attackQueue(attack, loud, quiet)])
  attacks.close()
  const operations = inOrder(OPERATIONS).filter(({ parent }) => !PROXIED.includes(parent.name))
  for (const method of operations.filter(({ name }) => isWanted(name)))
    contests.push([method.name, await measureRpc(url, method, loud, quiet)])
  summarise(contests)
  const grownMib = residentMib(product.child.pid ?? 0) - residentBefore
  reportBaseline('fairness-memory-after', grownMib, 'MiB of the server above those before the first burst')
}

async function attackQueue(attack: QueueAttack, loud: TenancyFixture, quiet: TenancyFixture): Promise<Contest> {
  const [ofLoud, ofQuiet] = [await freshHeaders(loud), await freshHeaders(quiet)]
  const burst = { ...attack.burst, headers: { ...ofLoud, ...attack.burst.headers }, count: BURST }
  const probe = { ...attack.probe, headers: { ...ofQuiet, ...attack.probe.headers } }
  return show(attack.name, await leastOf(burst, [shortList(product.url, ofQuiet), probe]))
}

async function measureRpc(
  url: string,
  method: DescMethodUnary,
  loud: TenancyFixture,
  quiet: TenancyFixture,
): Promise<Contest> {
  const [ofLoud, ofQuiet] = [await freshHeaders(loud), await freshHeaders(quiet)]
  const { asked, isValid } = await largestValid(url, method, loud, ofLoud)
  const cpuMs = await cpuMsPerCall(asked)
  const valid = isValid ? '' : ', rejected'
  reportBaseline(`fairness-cost/${method.name}`, cpuMs, `CPU ms per call of ${asked.body.length} bytes${valid}`)
  const small = largestMessages(method, quiet).at(-1) ?? {}
  const probe = { ...rpc(url, method, small, ofQuiet), units: costOf(method) }
  return show(method.name, await leastOf({ ...asked, count: BURST }, [shortList(url, ofQuiet), probe]))
}

/** A neighbour that takes the processors comes and goes; what is shared badly comes every time. */
async function leastOf(burst: Burst, probes: readonly Probed[]): Promise<Contest> {
  let least = await contest(burster, burst, probes)
  for (let round = 1; round < ROUNDS && least.overtakenBy > OVERTAKEN_MAX; round++) {
    const again = await contest(burster, burst, probes)
    if (again.overtakenBy < least.overtakenBy) least = { ...again, statuses: least.statuses }
  }
  return least
}

/** A short list of another service: what costs least. */
function shortList(url: string, headers: Asked['headers']): Asked {
  return { url: `${url}/webhook?page_size=1`, verb: 'GET', headers, body: '' }
}

async function largestValid(url: string, method: DescMethodUnary, tenant: TenancyFixture, headers: Asked['headers']) {
  const messages = largestMessages(method, tenant)
  for (const message of messages) {
    const asked = rpc(url, method, message, headers)
    const { status } = await ask({ ...asked, body: asked.body.replaceAll('%N%', 'first') })
    if (status === 200) return { asked, isValid: true }
  }
  return { asked: rpc(url, method, messages[0] ?? {}, headers), isValid: false }
}

function rpc(url: string, method: DescMethodUnary, message: JsonObject, headers: Asked['headers']): Asked {
  const body = JSON.stringify(message).replaceAll('%TOKEN%', headers.authorization?.slice(-8).toLowerCase() ?? '')
  const path = `/${method.parent.typeName}/${method.name}`
  return { url: url + path, verb: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body }
}

/** A new token for each measurement, so that none is limited by what another one sent. */
async function freshHeaders(tenant: TenancyFixture): Promise<Record<string, string>> {
  const client = createClient('connect', product.url, { token: tenant.teamToken })
  const { token } = await client.ok(ApiTokenService.method.createApiToken, {
    kind: 'team',
    name: 'fresh',
    preset: 'full',
  })
  client.close()
  return { authorization: `Bearer ${token}`, 'patchbay-environment': tenant.environmentId }
}

/** Processor time of server, database and sandboxes for one call, less what they use without calls. */
async function cpuMsPerCall(asked: Asked): Promise<number> {
  const pid = product.child.pid ?? 0
  const idle = await during(pid, () => sleep(200))
  const busy = await during(pid, async () => {
    for (let call = 0; call < COSTED; call++) await ask({ ...asked, body: asked.body.replaceAll('%N%', `c${call}`) })
  })
  return Math.max(0, busy.cpuMs - (idle.cpuMs / idle.ms) * busy.ms) / COSTED
}

async function during(
  pid: number,
  work: () => Promise<unknown>,
): Promise<{ readonly cpuMs: number; readonly ms: number }> {
  const [cpuMs, ms] = [cpuMsOfTree(pid), performance.now()]
  await work()
  return { cpuMs: cpuMsOfTree(pid) - cpuMs, ms: performance.now() - ms }
}

function show(name: string, contest: Contest): Contest {
  const { statuses, overtakenBy, worstMs, aloneMs, probes, odd } = contest
  const times = `alone ${aloneMs.toFixed(0)} ms, worst ${worstMs.toFixed(0)} ms of ${probes}`
  const others = odd.length === 0 ? '' : `, probes answered ${odd}`
  process.stderr.write(`${name}: ${JSON.stringify(statuses)}, overtaken by ${overtakenBy}, ${times}${others}\n`)
  return contest
}

function summarise(contests: readonly [string, Contest][]): void {
  const worst = contests.toSorted(([, one], [, other]) => other.overtakenBy - one.overtakenBy)[0]
  const sum = (count: (contest: Contest) => number) => contests.reduce((total, [, each]) => total + count(each), 0)
  process.stderr.write(`most overtaken: ${worst?.[0]}\n`)
  const [slowest] = contests.toSorted(([, one], [, other]) => slowdownOf(other) - slowdownOf(one))
  if (slowest !== undefined)
    reportBaseline('fairness-slowdown', slowdownOf(slowest[1]), `times a probe alone, ${slowest[0]}`)
  if (wanted[0] === '') reportAtLeast('fairness-contests', contests.length, 'RPCs and queues', 125)
  reportAtMost('fairness-overtaken', worst?.[1].overtakenBy ?? 0, 'requests of another tenant', OVERTAKEN_MAX)
  reportAtMost(
    'fairness-probes-rejected',
    sum(({ odd }) => odd.length),
    'probes',
    0,
  )
  const failed = ({ statuses }: Contest) =>
    Object.entries(statuses).reduce((total, [status, count]) => total + (isFailure(Number(status)) ? count : 0), 0)
  reportAtMost('fairness-failed', sum(failed), 'requests of the burst that failed with 5xx', 0)
}

function slowdownOf({ worstMs, aloneMs }: Contest): number {
  return worstMs / Math.max(1, aloneMs)
}

/** A rejected body may break its connection (status 0): the server does not read it to the end. */
function isFailure(status: number): boolean {
  return status >= 500
}
