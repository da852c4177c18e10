import { LRUCache } from 'lru-cache'
import type { Clock, Json, JsonObject } from '../base/index.ts'
import { explainSignature, type InboundDelivery, type KeySource } from '../formats/index.ts'
import type { ParsedRequest } from './parsed-request.ts'
import { type InboundSource, scopeOf } from './source.ts'

/** Rejected requests and handshakes of one address that one process keeps in an hour; more are answered, and not kept. */
const KEPT_PER_HOUR_MAX = 200
const SOURCES_MAX = 50_000
const HOUR_MS = 3_600_000

/** Bounds how many requests are kept that are no events: forged traffic does not fill the disk. */
export class RejectionBudget {
  readonly #counts = new LRUCache<string, { count: number; readonly sinceMs: number }>({ max: SOURCES_MAX })
  readonly #clock: Pick<Clock, 'monotonicMs'>

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Whether one more request of the address is kept. */
  take(sourceId: string): boolean {
    const nowMs = this.#clock.monotonicMs()
    const before = this.#counts.get(sourceId)
    const current = before === undefined || nowMs - before.sinceMs >= HOUR_MS ? { count: 0, sinceMs: nowMs } : before
    current.count += 1
    this.#counts.set(sourceId, current)
    return current.count <= KEPT_PER_HOUR_MAX
  }
}

/**
 * Why a request was rejected, for the owner of the definition: the reason, and which part of the signed content differs. Holds
 * neither secrets nor the expected signature.
 */
export async function explainRejection(
  { keys, clock }: { readonly keys: KeySource; readonly clock: Pick<Clock, 'now'> },
  source: InboundSource,
  { raw, decoded }: ParsedRequest,
  delivery: InboundDelivery,
  reason: string,
): Promise<JsonObject> {
  const { signature } = source.webhook
  if (signature === undefined) return { reason }
  const context = { now: () => clock.now(), keys }
  const isCompressed = decoded !== undefined && decoded !== raw
  const readings = isCompressed ? { otherStage: source.webhook.bodyStage === 'raw' ? decoded : raw } : {}
  const explanation = await explainSignature(signature, delivery, scopeOf(source), context, readings)
  return explanation === undefined ? { reason } : { ...(explanation as unknown as Record<string, Json>), reason }
}
