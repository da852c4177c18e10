import { LRUCache } from 'lru-cache'
import { explainSignature, type KeySource, type WebhookRequest } from '../../engine/formats/index.ts'
import { type Clock, HOUR_MS } from '../../foundation/base/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import type { InboundState } from './inbound-event.ts'
import { type InboundSource, scopeOf } from './source.ts'

/** Told of a request by what became of it. @param reason of a rejected one; may hold text of the sender */
export type ObserveInbound = (
  state: InboundState,
  source: Pick<InboundSource, 'environmentId' | 'environmentIntegrationId' | 'integration'>,
  reason?: string,
) => void

/** Rejected requests, and as many handshakes, of one address that one process keeps in an hour; more are only answered. */
const KEPT_PER_HOUR_MAX = 200
const COUNTS_MAX = 100_000

/** Bounds how many requests are kept that are no events: forged traffic neither fills the disk nor hides handshakes. */
export class RejectionBudget {
  /** By size, not by `max`, which would allocate all places at once. */
  readonly #counts = new LRUCache<string, { count: number; readonly sinceMs: number }>({
    maxSize: COUNTS_MAX,
    sizeCalculation: () => 1,
  })
  readonly #clock: Pick<Clock, 'monotonicMs'>

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Whether one more request of the address is kept; each state has its own budget. */
  take(state: 'rejected' | 'handshake', sourceId: string): boolean {
    const key = `${state} ${sourceId}`
    const nowMs = this.#clock.monotonicMs()
    const before = this.#counts.get(key)
    const current = before === undefined || nowMs - before.sinceMs >= HOUR_MS ? { count: 0, sinceMs: nowMs } : before
    current.count += 1
    this.#counts.set(key, current)
    return current.count <= KEPT_PER_HOUR_MAX
  }
}

/**
 * Why a request was rejected, for the owner of the definition: the reason, and what was compared: the signed parts, by length and
 * hash, and the time. Holds neither secrets nor the expected signature.
 */
export async function explainRejection(
  { keys, clock }: { readonly keys: KeySource; readonly clock: Pick<Clock, 'now'> },
  source: InboundSource,
  request: WebhookRequest,
  reason: string,
): Promise<JsonObject> {
  const { signature } = source.webhook
  if (signature === undefined) return { reason }
  const context = { now: () => clock.now(), keys: keys.ofOwner(source.environmentId) }
  const explanation = await explainSignature(signature, request, scopeOf(source), context)
  return explanation === undefined ? { reason } : { ...(explanation as unknown as Record<string, Json>), reason }
}
