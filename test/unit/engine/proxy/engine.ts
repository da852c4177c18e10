import { afterAll, afterEach } from 'vitest'
import { compilePlan, resolveConfig } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import type { ProxyDependencies } from '../../../../src/engine/proxy/dependencies.ts'
import {
  type AccountAccess,
  type ActionRequest,
  createProxy,
  type PageStep,
  type PreviewRequest,
  type ProxyRequest,
  type RequestPreview,
} from '../../../../src/engine/proxy/index.ts'
import type { ActionRun, StreamOutcome } from '../../../../src/engine/proxy/outcome.ts'
import type { StreamRequest } from '../../../../src/engine/proxy/request.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { startUpstream, type Upstream } from '../../../support/upstream.ts'

/** The engine on a scripted upstream, with a clock that only moves when something sleeps. */
export interface Engine {
  readonly upstream: Upstream
  /** Everything the engine slept, in milliseconds. */
  readonly sleptMs: number[]
  call(
    config: JsonObject,
    request: ProxyRequest,
    account?: Partial<AccountAccess>,
  ): ReturnType<ReturnType<typeof createProxy>['call']>
  pages(
    config: JsonObject,
    request: ProxyRequest,
    state?: JsonObject | null,
    account?: Partial<AccountAccess>,
  ): ReturnType<ReturnType<typeof createProxy>['pages']>
  runAction(config: JsonObject, request: ActionRequest, account?: Partial<AccountAccess>): Promise<ActionRun>
  stream(config: JsonObject, request: StreamRequest, account?: Partial<AccountAccess>): Promise<StreamOutcome>
  preview(config: JsonObject, request: PreviewRequest, account?: Partial<AccountAccess>): Promise<RequestPreview>
}

export const NOW = new Date('2026-01-01T00:00:00Z')

/** Starts an engine for a test file; exchanges are verified after each test. @param ports credential refresh, account reports and limits, if any */
export async function startEngine(
  ports: Pick<ProxyDependencies, 'credentialRefresher' | 'accountReporter' | 'callLimiter'> = {},
): Promise<Engine> {
  const upstream = await startUpstream()
  const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
  const evaluator = createEvaluator()
  const sleptMs: number[] = []
  const slept = () => sleptMs.reduce((sum, ms) => sum + ms, 0)
  const proxy = createProxy({
    http,
    evaluator,
    clock: {
      now: () => new Date(NOW.getTime() + slept()),
      monotonicMs: slept,
      sleep: async (ms) => {
        sleptMs.push(ms)
      },
    },
    random: () => 0.5,
    nonce: () => 'n0nce',
    ...ports,
  })
  afterEach(() => {
    sleptMs.length = 0
    upstream.verify()
  })
  afterAll(async () => {
    await evaluator[Symbol.asyncDispose]()
    await http[Symbol.asyncDispose]()
    await upstream[Symbol.asyncDispose]()
  })
  const planOf = (config: JsonObject) => compilePlan(resolveConfig({ base_url: upstream.url }, config).config)
  return {
    upstream,
    sleptMs,
    call: (config, request, account) => proxy.call(planOf(config), accountOf(account), request),
    pages: (config, request, state, account) => proxy.pages(planOf(config), accountOf(account), request, state),
    runAction: (config, request, account) => proxy.runAction(planOf(config), accountOf(account), request),
    stream: (config, request, account) => proxy.stream(planOf(config), accountOf(account), request),
    preview: (config, request, account) => proxy.preview(planOf(config), accountOf(account), request),
  }
}

/** The target of a described method. */
export function on(resource: string, method: string): Pick<ProxyRequest, 'target'> {
  return { target: { kind: 'method', resource, method } }
}

/** The steps of a walk through a list, at most so many. */
export async function collect(steps: AsyncIterable<PageStep>, most = 20): Promise<PageStep[]> {
  const collected: PageStep[] = []
  for await (const step of steps) {
    collected.push(step)
    if (collected.length === most) break
  }
  return collected
}

/** The reason and message of a failure; throws when there is none. */
export async function failureOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
  } catch (error) {
    if (error instanceof Failure) return `${error.reason}: ${error.publicMessage}`
    throw error
  }
  throw new Error('nothing failed')
}

function accountOf(account: Partial<AccountAccess> = {}): AccountAccess {
  return { id: 'account-1', context: {}, credentials: {}, environmentVariables: {}, isSandbox: false, ...account }
}
