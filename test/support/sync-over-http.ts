import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { compilePlan } from '../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../src/engine/expressions/index.ts'
import { createProxy } from '../../src/engine/proxy/index.ts'
import type { Clock } from '../../src/foundation/base/index.ts'
import { createEgressPolicy, createHttpClient } from '../../src/foundation/egress/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { executeRun } from '../../src/sync/jobs/index.ts'
import { createProxySource } from '../../src/sync/jobs/page-source.ts'
import { recordingProgress, recordingSink, runOf } from '../unit/sync/jobs/recording.ts'

const ATTEMPTS_MAX = 5
const ACCOUNT = { id: 'account', isSandbox: false, context: {}, environmentVariables: {}, credentials: {} }

/** A third party on loopback, and runs that read its list `items` over HTTP, resumed from their checkpoints until they have ended. */
export interface SyncOverHttp extends AsyncDisposable {
  readonly url: string
  /** @param move passes the time until the run is due again */
  run(
    definition: JsonObject,
    clock: Clock,
    move: (ms: number) => void | Promise<void>,
    signal?: AbortSignal,
  ): Promise<SyncResult>
}

/** How a run has ended. */
interface SyncResult {
  readonly kind: string
  readonly reason: string | undefined
  readonly records: number
  readonly isComplete: boolean
  readonly stopReason: string | undefined
  readonly warnings: readonly string[]
  readonly attempts: number
}

export async function startSyncOverHttp(
  answer: (request: IncomingMessage, response: ServerResponse, url: URL) => void,
): Promise<SyncOverHttp> {
  const server = createServer((request, response) => {
    request.resume()
    answer(request, response, new URL(request.url ?? '', 'http://upstream'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
  const evaluator = createEvaluator()
  return {
    url,
    async run(definition, clock, move, signal = new AbortController().signal) {
      const plan = compilePlan({ base_url: url, ...definition })
      const proxy = createProxy({ http, clock, evaluator, random: () => 0 })
      const progress = recordingProgress()
      const sink = recordingSink()
      const source = createProxySource(proxy, plan, ACCOUNT)
      const deps = { source, sink, clock, random: () => 0, account: ACCOUNT, attemptsMax: ATTEMPTS_MAX }
      for (let attempt = 1; ; ) {
        const resources = [{ resource: 'items', method: 'list', persist: true }]
        const run = { ...runOf(resources, { checkpoint: progress.checkpoint }), attempt }
        const outcome = await executeRun(deps, run, progress, signal)
        if (outcome.kind === 'rate_limited') await move(outcome.afterMs)
        else if (outcome.kind === 'retry') {
          await move(Math.max(5_000, outcome.afterMs ?? 0))
          attempt++
        } else {
          const [stats] = progress.stats
          return {
            kind: outcome.kind,
            reason: outcome.kind === 'failed' ? outcome.error.reason : stats?.errors?.[0]?.reason,
            records: stats?.fetched ?? 0,
            isComplete: stats?.complete ?? false,
            stopReason: stats?.stopReason,
            warnings: (stats?.warnings ?? []).map(({ reason }) => reason),
            attempts: attempt,
          }
        }
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await http[Symbol.asyncDispose]()
      await evaluator[Symbol.asyncDispose]?.()
    },
  }
}
