import type { Evaluator } from '../../engine/expressions/index.ts'
import type { PollLoopSpec } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import type { Logger } from '../../foundation/telemetry/index.ts'
import type { AccountDependencies } from '../../platform/accounts/index.ts'
import { InboundProcessor, type InboundProcessorDeps } from './event-worker.ts'
import { processInboundEvent } from './handle-event.ts'
import { InboundQueue } from './inbound-queue.ts'
import { createSourceReader } from './source.ts'
import { deleteExpiredClaims, deleteShortLived } from './sql/maintenance.ts'
import { type HintedSyncs, syncHintStarter } from './sync-hints.ts'

/** What a worker processes received webhooks with. */
export interface InboundWorkerDeps extends Omit<InboundProcessorDeps, 'queue' | 'process'> {
  readonly database: Database
  readonly accounts: Pick<AccountDependencies, 'database' | 'reader' | 'secrets' | 'definitions' | 'contextValues'>
  readonly evaluator: Pick<Evaluator, 'evaluate'>
  readonly logger: Pick<Logger, 'warn' | 'error'>
  /** Without a trailing slash. */
  readonly publicUrl: () => string
  readonly syncs: HintedSyncs
}

/** Creates what processes received webhooks, starts the syncs of hints, and deletes what is kept for a day. */
export function createInboundWorker(deps: InboundWorkerDeps): InboundProcessor {
  const processing = { ...deps, sources: createSourceReader(deps) }
  const process: InboundProcessorDeps['process'] = (lease) => processInboundEvent(processing, lease)
  const beside = [syncHintStarter(deps), inboundCleaner(deps.database)]
  return new InboundProcessor({ ...deps, queue: new InboundQueue(deps), process }, beside)
}

const CLEAN_INTERVAL_MS = 60_000
const CLEAN_BATCH = 1_000
/** Rejected requests and handshakes are kept so long. */
const SHORT_LIVED_MS = 24 * 60 * 60 * 1_000

/** Deletes dedupe keys whose window is over, and rejected requests and handshakes after a day. */
export function inboundCleaner({ pool }: Pick<Database, 'pool'>): PollLoopSpec {
  return {
    name: 'inbound-cleaner',
    intervalMs: CLEAN_INTERVAL_MS,
    async runOnce() {
      const claims = await deleteExpiredClaims(pool, CLEAN_BATCH)
      const requests = await deleteShortLived(pool, SHORT_LIVED_MS, CLEAN_BATCH)
      return claims === CLEAN_BATCH || requests === CLEAN_BATCH
    },
  }
}
