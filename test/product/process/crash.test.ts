import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { caseCount } from '../../support/case-count.ts'
import { preparedDataDir } from '../../support/prepared-data-dir.ts'
import { type RunningProduct, removeDataDir, startProduct } from '../../support/product.ts'
import { callRest, expectJson } from '../../support/rest.ts'
import { seedChain } from '../../support/seed.ts'

const ROUNDS = caseCount(1, 3)
const WRITERS = 4
/** The kill comes somewhere among this many acknowledged writes. */
const WRITES_MAX = caseCount(40, 120)

describe('SIGKILL of the whole process tree during writes', () => {
  it('loses no acknowledged write, and the next start succeeds', async () => {
    const dataDir = preparedDataDir()
    const environment = { PATCHBAY_RATE_LIMIT: '0', PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' }
    let product = await startProduct({ dataDir, environment })
    onTestFinished(async () => {
      await product.stop()
      removeDataDir(dataDir)
    })
    const { team_token, environment_token, environment_id } = product.bootstrap
    const seed = await seedChain({
      url: product.url,
      teamToken: team_token,
      environmentToken: environment_token,
      environmentId: environment_id,
    })

    const acknowledged = new Map<string, string>()
    for (let round = 0; round < ROUNDS; round++) {
      const killAfter = acknowledged.size + 1 + Math.floor(Math.random() * WRITES_MAX)
      await writeUntilKilled(product, seed.environmentIntegrationId, acknowledged, killAfter)
      product = await startProduct({ dataDir, environment })
      for (const [id, tenantId] of acknowledged) {
        const account = await expectJson('GET', `${product.url}/integrated-account/${id}`, environment_token)
        expect(account.tenant_id, `written in a round killed after ${killAfter} writes`).toBe(tenantId)
      }
    }
  })
})

/** Writes from several clients at once, notes what was answered with success, and kills everything at the given count. */
async function writeUntilKilled(
  product: RunningProduct,
  environmentIntegrationId: string,
  acknowledged: Map<string, string>,
  killAfter: number,
): Promise<void> {
  const token = product.bootstrap.environment_token
  let isKilled = false
  const write = async (body: object): Promise<void> => {
    const answer = await callRest('POST', `${product.url}/integrated-account`, token, body).catch(() => undefined)
    if (answer?.status === 200) acknowledged.set(answer.body.id, answer.body.tenant_id)
  }
  const writer = async (name: number) => {
    for (let count = 0; !isKilled; count++) {
      await write({
        environment_integration_id: environmentIntegrationId,
        tenant_id: `tenant-${name}-${count}`,
        credentials: { api_key: 'k' },
      })
      if (acknowledged.size >= killAfter && !isKilled) {
        isKilled = true
        killTree(product)
      }
    }
  }
  const exited = new Promise((resolve) => product.child.once('exit', resolve))
  await Promise.all(Array.from({ length: WRITERS }, (_, name) => writer(name)))
  await exited
}

function killTree(product: RunningProduct): void {
  const postmaster = Number.parseInt(readFileSync(join(product.dataDir, 'postgres/data/postmaster.pid'), 'utf8'), 10)
  const backends = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === postmaster)
  for (const pid of [product.child.pid, postmaster, ...backends]) if (pid !== undefined) kill(pid)
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return undefined // ended while we looked
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // Already gone: a backend ends by itself when its postmaster dies.
  }
}
