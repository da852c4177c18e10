import { readdirSync, readFileSync } from 'node:fs'
import type { JsonObject } from '../../../src/foundation/json/index.ts'
import { expectJson } from '../../support/rest.ts'
import { overHttp1 } from './rpc-patch.ts'
import { jsonRequest } from './support/http1-connection.ts'
import { type LoadPlan, type LoadResult, measureInterleaved } from './support/load.ts'
import { withProxyBench } from './support/proxy-bench.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from './support/report.ts'

const RATIO_MIN = 0.7
const SANDBOXES_MAX = 0

/** Lists of 100 records at once: as many as keep the server busy without queueing megabytes. */
const LOAD: LoadPlan = { inFlight: 8, warmUpMs: 2_000, measureMs: 3_000 }

/** Twenty fields in the expressions that mappings of contacts use. */
const MAPPING: JsonObject = {
  resource: 'contacts',
  method: 'list',
  response: {
    fields: {
      id: 'id',
      created_at: 'createdAt',
      updated_at: 'updatedAt',
      deleted: 'archived',
      first_name: 'properties.firstname',
      last_name: 'properties.lastname',
      name: '$trim(properties.firstname & " " & properties.lastname)',
      title: 'properties.jobtitle',
      department: 'properties.department',
      account: 'properties.associatedcompanyid ? {"id": properties.associatedcompanyid}',
      owner: 'properties.owner_id ? {"id": properties.owner_id}',
      emails: 'properties.email ? [{"address": properties.email, "type": "work", "is_primary": true}]',
      phones:
        '[properties.phone ? {"number": properties.phone, "type": "work"}, properties.mobilephone ? {"number": properties.mobilephone, "type": "mobile"}]',
      addresses:
        '[{"street_1": properties.address, "city": properties.city, "state": properties.state, "postal_code": properties.zip, "country": properties.country, "type": "work"}]',
      urls: '[properties.website ? {"url": properties.website}, properties.linkedin ? {"url": properties.linkedin}]',
      lifecycle_stage: 'properties.lifecyclestage',
      tags: '$split(properties.tags, ";").{"name": $}',
      last_activity_at: 'properties.last_contacted',
      remote_id: 'id',
    },
  },
  enums: { lifecycle_stage: { map: { marketingqualifiedlead: 'mql', customer: 'customer' } } },
  custom_fields: { mode: 'rest', path: 'properties' },
}

/** Lists of 100 records, mapped to 20 fields, against the same lists through the proxy alone. */
export async function run(): Promise<void> {
  await withProxyBench(0, async ({ product, accountId }) => {
    const token = product.bootstrap.environment_token
    const mapping = {
      integrated_account_id: accountId,
      model: 'crm',
      resource: 'contacts',
      method: 'list',
      config: MAPPING,
    }
    await expectJson('POST', `${product.url}/unified-mapping`, token, mapping)
    const query = `integrated_account_id=${accountId}`
    const mapped = jsonRequest('GET', `/unified/crm/contacts?${query}`, token, undefined)
    const alone = jsonRequest('GET', `/proxy/contacts?${query}`, token, undefined)
    await assertMapped(`${product.url}/unified/crm/contacts?${query}`, token)
    const pid = product.child.pid ?? 0
    const cpuMs = { floor: [] as number[], unified: [] as number[] }
    const { floor, unified } = await measureInterleaved({
      floor: () => measureLists(product.port, alone, pid, cpuMs.floor),
      unified: () => measureLists(product.port, mapped, pid, cpuMs.unified),
    })
    reportBaseline('unified-list/proxy-alone', floor.perSecond, 'lists/s')
    reportBaseline('unified-list/proxy-alone/server-cpu', medianOf(cpuMs.floor), 'ms/list')
    reportBaseline('unified-list', unified.perSecond, 'lists/s')
    reportBaseline('unified-list/server-cpu', medianOf(cpuMs.unified), 'ms/list')
    reportAtLeast('unified-list/ratio', unified.perSecond / floor.perSecond, 'x proxy alone', RATIO_MIN)
    reportAtMost('unified-list/sandboxes', countSandboxes(pid), 'processes started', SANDBOXES_MAX)
  })
}

/** Lists per second. @param cpuMs is given the processor's time of the server per list, of all that were asked for */
async function measureLists(port: number, request: Buffer, pid: number, cpuMs: number[]): Promise<LoadResult> {
  const from = cpuTimeMs(pid)
  let lists = 0
  const result = await overHttp1(
    port,
    () => {
      lists++
      return request
    },
    LOAD,
  )
  cpuMs.push((cpuTimeMs(pid) - from) / lists)
  return result
}

/** A clock tick of Linux, in which `/proc` counts. */
const TICK_MS = 10

/** User and system time of a process: fields 14 and 15 of its `stat`, of which the second has the name in parentheses. */
function cpuTimeMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** @throws Error when a record is not what the mapping says: a benchmark of a wrong answer measures nothing */
async function assertMapped(url: string, token: string): Promise<void> {
  const { result } = await expectJson('GET', url, token)
  const [first] = result
  const isMapped = result.length === 100 && first.lifecycle_stage === 'mql' && first.custom_fields?.score === 1
  const empty = Object.entries(first).filter(([, value]) => value === null)
  if (!isMapped || empty.length > 0) throw new Error(`the records are not mapped: ${JSON.stringify(first)}`)
}

/** Processes that evaluate expressions: they start with the first evaluation, and stay. */
function countSandboxes(pid: number): number {
  return readdirSync('/proc').filter((entry) => /^\d+$/.test(entry) && isSandboxOf(entry, pid)).length
}

function isSandboxOf(entry: string, pid: number): boolean {
  try {
    const isChild = readFileSync(`/proc/${entry}/stat`, 'utf8').split(') ')[1]?.split(' ')[1] === String(pid)
    return isChild && readFileSync(`/proc/${entry}/cmdline`, 'utf8').includes('expressions/sandbox')
  } catch {
    return false
  }
}
