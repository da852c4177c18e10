import { catchFailure, Failure, newId } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { AccountDependencies } from '../../platform/accounts/index.ts'
import { updateContextFromWebhook } from '../../platform/accounts/index.ts'
import { appendEvents, type NewEvent, payloadOf } from '../../platform/outbox/index.ts'
import { type InboundEffects, isUnrouted, type ProcessingOutcome, type RoutedItem } from './effects.ts'
import type { InboundEventRecord } from './inbound-event.ts'
import {
  closeUnrouted,
  findNextIndexes,
  insertItems,
  type NewItem,
  type ProcessedEvent,
  updateProcessedEvents,
} from './sql/processing.ts'
import { insertSyncHints, type SyncHint } from './sql/sync-hint.ts'
import { HINT_DELAY_MS } from './sync-hints.ts'

/** What storing effects takes. */
export type EffectDeps = Pick<AccountDependencies, 'secrets' | 'definitions' | 'contextValues'>

/** An event with what processing it came to. */
export interface FinishedEvent {
  readonly event: InboundEventRecord
  readonly isReplay: boolean
  readonly outcome: ProcessingOutcome
  /** No attempt follows. */
  readonly isOver: boolean
}

/** The context that a delivery changes cannot be stored; `cause` says why. */
export class ContextRejected extends Error {
  readonly eventId: string
  readonly failure: Failure

  constructor(eventId: string, failure: Failure) {
    super(failure.message, { cause: failure })
    this.eventId = eventId
    this.failure = failure
  }
}

/**
 * Writes everything that events lead to: contexts of accounts, events of the outbox, the lines of their lists, hints, and how
 * they ended. `tx` is the transaction that ends the leases on them, so that each effect happens once.
 *
 * @throws ContextRejected
 */
export async function storeEffects(deps: EffectDeps, tx: Tx, finished: readonly FinishedEvent[]): Promise<void> {
  await storeContexts(deps, tx, finished)
  const again = finished
    .filter(({ isReplay, outcome }) => isReplay && outcome.kind === 'done')
    .map(({ event }) => event)
  const nextIndexes = again.length === 0 ? new Map<string, number>() : await findNextIndexes(tx, again)
  if (again.length > 0) await closeUnrouted(tx, again)
  const effects = finished.flatMap((each) => itemEffectsOf(each, nextIndexes.get(each.event.id) ?? 0))
  await appendEvents(
    tx,
    effects.flatMap(({ event }) => (event === undefined ? [] : [event])),
  )
  if (effects.length > 0)
    await insertItems(
      tx,
      effects.map(({ item }) => item),
    )
  await updateProcessedEvents(
    tx,
    finished.map(processedEvent).sort((one, other) => (one.id < other.id ? -1 : 1)),
  )
  const hints = groupHints(effects)
  if (hints.length > 0) await insertSyncHints(tx, hints, HINT_DELAY_MS)
}

/** In the order of the accounts, so that two transactions never deadlock. */
async function storeContexts(deps: EffectDeps, tx: Tx, finished: readonly FinishedEvent[]): Promise<void> {
  const changes = finished.flatMap(({ event, outcome }) => {
    if (outcome.kind !== 'done' || outcome.effects.context === undefined) return []
    const { accountIds, ...change } = outcome.effects.context
    return accountIds.map((id) => ({ event, id, change }))
  })
  for (const { event, id, change } of changes.sort((one, other) => (one.id < other.id ? -1 : 1))) {
    const ref = { environmentId: event.environmentId, id }
    const result = await catchFailure(() =>
      updateContextFromWebhook(deps, tx, ref, { ...change, inboundEventId: event.id }),
    )
    if (result instanceof Failure) throw new ContextRejected(event.id, result)
  }
}

/** The stored item, and the event of the outbox that announces it. */
interface ItemEffects {
  readonly item: NewItem
  readonly event: NewEvent | undefined
}

function itemEffectsOf({ event, isReplay, outcome }: FinishedEvent, firstIndex: number): readonly ItemEffects[] {
  if (outcome.kind !== 'done') return []
  const { items, integration } = outcome.effects
  return items.map((routed, at) => {
    const recorded = routed.state === 'routed' ? recordEvent(event, integration, isReplay, routed) : undefined
    const item = {
      environment_id: event.environmentId,
      inbound_event_id: event.id,
      index: firstIndex + at,
      is_replay: isReplay,
      state: routed.state,
      integrated_account_id: routed.state === 'unrouted' ? null : routed.account.id,
      lookup_value: routed.lookupValue,
      event_id: recorded?.id ?? null,
      ...recordOf(routed),
    }
    return { item, event: recorded }
  })
}

function recordOf(routed: RoutedItem): Pick<NewItem, 'resource' | 'record_id' | 'detail'> {
  switch (routed.state) {
    case 'routed':
      return { resource: routed.item.resource, record_id: routed.item.id, detail: null }
    case 'unrouted':
      return { resource: routed.resource, record_id: routed.recordId, detail: routed.detail }
    default:
      return { resource: routed.resource, record_id: null, detail: routed.detail }
  }
}

const recordPayload = payloadOf('RecordEventPayload', ['truncated_fields'])

/** The event of a record. */
function recordEvent(
  event: InboundEventRecord,
  integration: InboundEffects['integration'],
  isReplay: boolean,
  { item, account }: Extract<RoutedItem, { readonly state: 'routed' }>,
): NewEvent {
  const payload = recordPayload({
    ...item,
    integratedAccountId: account.id,
    tenantId: account.tenantId,
    environmentIntegrationId: event.environmentIntegrationId,
    integration,
    recordId: item.id,
    occurredAt: item.occurredAt ?? event.providerTime,
    inboundEventId: event.id,
    receivedAt: event.receivedAt,
    replay: isReplay,
  })
  const { environmentId } = event
  return { id: newId(), environmentId, type: `record:${item.event}`, payload, integratedAccountId: account.id }
}

/** Hints about one resource of one account in one transaction are one. */
function groupHints(effects: readonly ItemEffects[]): readonly SyncHint[] {
  const hints = effects.flatMap(({ item }) =>
    item.state === 'hint' && item.integrated_account_id !== null && item.resource !== null
      ? [
          {
            environmentId: item.environment_id,
            integratedAccountId: item.integrated_account_id,
            resource: item.resource,
            item: { inboundEventId: item.inbound_event_id, index: item.index },
          },
        ]
      : [],
  )
  const groups = Map.groupBy(hints, ({ environmentId, integratedAccountId, resource }) =>
    JSON.stringify([environmentId, integratedAccountId, resource]),
  )
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    return first === undefined ? [] : [{ ...first, items: group.map(({ item }) => item) }]
  })
}

function processedEvent({ event, isReplay, outcome, isOver }: FinishedEvent): ProcessedEvent {
  const { environmentId, id } = event
  const trace = isReplay ? withReplay(event.trace, outcome.trace) : { ...event.trace, ...outcome.trace }
  return { environmentId, id, trace, ...endingOf(outcome, isOver) }
}

function endingOf(outcome: ProcessingOutcome, isOver: boolean): Pick<ProcessedEvent, 'state' | 'error'> {
  switch (outcome.kind) {
    case 'done':
      return { state: isUnrouted(outcome.effects) ? 'unrouted' : 'processed', error: null }
    case 'failed':
      return { state: isOver ? 'failed' : 'received', error: outcome.error }
  }
}

const REPLAYS_MAX = 5

/** The trace of the first processing stays; those of the last replays are in a list. */
function withReplay(trace: JsonObject, steps: JsonObject): JsonObject {
  const replays = Array.isArray(trace.replays) ? trace.replays : []
  return { ...trace, replays: [...replays, steps].slice(-REPLAYS_MAX) }
}
