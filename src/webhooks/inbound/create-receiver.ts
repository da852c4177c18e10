import type { WebhookAnswer } from '../../engine/definitions/index.ts'
import type { Evaluator } from '../../engine/expressions/index.ts'
import { createKeySource, type KeySource } from '../../engine/formats/index.ts'
import type { Clock } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import type { HttpClient } from '../../foundation/egress/index.ts'
import type { AccountDependencies } from '../../platform/accounts/index.ts'
import type { ContextUpdateDeps } from './context-update.ts'
import { createEventStore } from './event-store.ts'
import { type InboundRequest, receiveWebhook } from './receive.ts'
import { type ObserveInbound, RejectionBudget } from './rejection.ts'
import { createSourceReader, type SourceAddress } from './source.ts'
import { TokenBuckets } from './token-bucket.ts'
import { UnverifiedReads } from './unverified-reads.ts'

/** What a server receives webhooks with. */
export interface ReceiverDeps extends Pick<ContextUpdateDeps, 'isSubscribing'> {
  readonly database: Database
  readonly accounts: Pick<AccountDependencies, 'database' | 'reader' | 'secrets' | 'definitions' | 'contextValues'>
  readonly evaluator: Pick<Evaluator, 'evaluate'>
  readonly http: Pick<HttpClient, 'send'>
  readonly clock: Clock
  /** Without a trailing slash. */
  readonly publicUrl: () => string
  /** Called when something was stored that is to be processed. */
  readonly onReceived?: () => void
  readonly observe?: ObserveInbound | undefined
}

/** Receives requests; see `receiveWebhook`. */
export type ReceiveRequest = (address: SourceAddress, request: InboundRequest) => Promise<WebhookAnswer>

const KEY_MS_MAX = 5_000
const KEY_BYTES_MAX = 256 * 1024

/** Creates the receiver of a process, with its caches, rates and batches. */
export function createReceiver(deps: ReceiverDeps): ReceiveRequest {
  const { clock } = deps
  const observe: ObserveInbound = (state, source, reason) => {
    deps.observe?.(state, source, reason)
    if (state === 'received') deps.onReceived?.()
  }
  const all = {
    ...deps,
    observe,
    sources: createSourceReader(deps),
    store: createEventStore(deps.database),
    rates: new TokenBuckets(clock),
    rejections: new RejectionBudget(clock),
    unverified: new UnverifiedReads(clock),
    keys: createWebhookKeys(deps),
  }
  return (address, request) => receiveWebhook(all, address, request)
}

/** The public keys of third parties, fetched when a signature names them. */
function createWebhookKeys({ http, clock }: Pick<ReceiverDeps, 'http' | 'clock'>): KeySource {
  return createKeySource({
    fetchKey: (url) =>
      http.send({ method: 'GET', url, headers: {}, timeoutMs: KEY_MS_MAX, maxResponseBytes: KEY_BYTES_MAX }),
    now: () => clock.now(),
  })
}
