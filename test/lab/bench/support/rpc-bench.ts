import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Pool } from 'pg'
import {
  bareEnvironment,
  type RunningProduct,
  removeDataDir,
  startProduct,
  temporaryDataDir,
} from '../../../support/product.ts'
import { type Seed, seedChain } from '../../../support/seed.ts'

/** Where a server listens. */
export interface BenchTarget {
  readonly url: string
  readonly port: number
  readonly child: ChildProcess
}

/** A running product with rows to hit, and a pool on the very same database for the floor. */
export interface RpcBench {
  readonly product: RunningProduct
  /** The same handlers on the same database, served by connect-node alone. */
  readonly connectNode: BenchTarget
  readonly seed: Seed
  readonly pool: Pool
  readonly triggerIds: readonly string[]
  readonly accountIds: readonly string[]
}

/** Connections of the floor and of the product alike, so that neither wins by concurrency. */
export const POOL_SIZE = 16
/** Rows that calls are spread over, so that they do not queue for one row lock. */
const ROWS = 64

const ENVIRONMENT = {
  PATCHBAY_RATE_LIMIT: '0',
  PATCHBAY_DATABASE_POOL: String(POOL_SIZE),
  PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
}

/**
 * Starts the product without its own rate limit, seeds rows, runs `work` and takes everything down.
 *
 * @param command starts another product than this tree's, as `startProduct` takes it
 */
export async function withRpcBench(
  work: (bench: RpcBench) => Promise<void>,
  command?: readonly string[],
): Promise<void> {
  const dataDir = temporaryDataDir()
  const product = await startProduct({
    dataDir,
    environment: ENVIRONMENT,
    ...(command !== undefined && { command }),
  })
  const pool = new Pool({
    host: `${dataDir}/postgres`,
    port: 5432,
    user: 'patchbay',
    database: 'postgres',
    max: POOL_SIZE,
  })
  try {
    const { team_token, environment_token, environment_id } = product.bootstrap
    const seed = await seedChain({
      url: product.url,
      teamToken: team_token,
      environmentToken: environment_token,
      environmentId: environment_id,
    })
    const triggerIds = await multiply(pool, 'sync_job_cron_trigger', seed.triggerId)
    const accountIds = await multiply(pool, 'integrated_account', seed.integratedAccountId)
    await withConnectNode(dataDir, (connectNode) => work({ product, connectNode, seed, pool, triggerIds, accountIds }))
  } finally {
    await pool.end()
    await product.stop()
    removeDataDir(dataDir)
  }
}

/** Runs the handlers under connect-node as a process of their own, as the product is one. */
async function withConnectNode(dataDir: string, work: (target: BenchTarget) => Promise<void>): Promise<void> {
  const server = spawn(process.execPath, [join(import.meta.dirname, 'connect-node-server.ts')], {
    env: { ...bareEnvironment(), ...ENVIRONMENT, PATCHBAY_DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [line] = await once(server.stdout, 'data')
    const port = Number(String(line))
    await work({ port, url: `http://127.0.0.1:${port}`, child: server })
  } finally {
    server.kill()
    await once(server, 'exit')
  }
}

/** Copies one row under new ids; a trigger's schedule is copied with it. */
async function multiply(pool: Pool, table: string, id: string): Promise<readonly string[]> {
  const ids: string[] = []
  for (let count = 0; count < ROWS; count++) {
    const { rows } = await pool.query<{ id: string }>(
      `insert into ${table} select (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid()))).* from ${table} t where id = $1 returning id`,
      [id],
    )
    const [copy] = rows
    if (copy === undefined) throw new Error(`no ${table} ${id}`)
    ids.push(copy.id)
    if (table === 'sync_job_cron_trigger')
      await pool.query(
        `insert into trigger_schedule select (jsonb_populate_record(t, jsonb_build_object('trigger_id', $2::text))).* from trigger_schedule t where trigger_id = $1`,
        [id, copy.id],
      )
  }
  return ids
}
