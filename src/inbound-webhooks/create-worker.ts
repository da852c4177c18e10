import type { AccountDependencies } from '../accounts/index.ts'
import type { PollLoopDeps, PollLoopSpec } from '../base/index.ts'
import { type Clock, PollLoop, type Random } from '../base/index.ts'
import type { Database } from '../database/index.ts'
import type { Evaluator } from '../expressions/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { InboundQueue } from './inbound-queue.ts'
import { inboundCleaner } from './maintenance.ts'
import { processInboundEvent } from './process.ts'
import { InboundProcessor, type InboundProcessorDeps } from './processor.ts'
import { createSourceReader } from './source.ts'
import { type HintedSyncs, syncHintStarter } from './sync-hints.ts'

/** What a worker processes received webhooks with. */
export interface InboundWorkerDeps
  extends PollLoopDeps,
    Pick<InboundProcessorDeps, 'onProcessed' | 'onStored' | 'holder'> {
  readonly database: Database
  readonly accounts: Pick<AccountDependencies, 'database' | 'reader' | 'secrets' | 'definitions' | 'contextValues'>
  readonly evaluator: Pick<Evaluator, 'evaluate'>
  readonly clock: Clock
  readonly random: Random
  readonly logger: Pick<Logger, 'warn' | 'error'>
  /** Without a trailing slash. */
  readonly publicUrl: () => string
  readonly syncs: HintedSyncs
}

/** The worker side of inbound webhooks. */
export interface InboundWorker extends AsyncDisposable {
  start(): void
  /** Processes now: a webhook was received. */
  wake(): void
}

/** Creates what processes received webhooks, starts the syncs of hints, and deletes what is kept for a day. */
export function createInboundWorker(deps: InboundWorkerDeps): InboundWorker {
  const processing = { ...deps, sources: createSourceReader(deps) }
  const processor = new InboundProcessor({
    ...deps,
    queue: new InboundQueue(deps),
    process: (lease) => processInboundEvent(processing, lease),
  })
  const specs: readonly PollLoopSpec[] = [syncHintStarter(deps), inboundCleaner(deps.database)]
  const loops = specs.map((spec) => new PollLoop(deps, spec))
  return {
    start() {
      processor.start()
      for (const loop of loops) loop.start()
    },
    wake() {
      processor.wake()
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([processor, ...loops].map((each) => each[Symbol.asyncDispose]()))
    },
  }
}
