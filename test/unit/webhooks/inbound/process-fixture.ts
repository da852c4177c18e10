import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { newId, systemClock } from '../../../../src/foundation/base/index.ts'
import { query } from '../../../../src/foundation/database/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { createDefinitionCache } from '../../../../src/platform/integrations/index.ts'
import { InboundProcessor } from '../../../../src/webhooks/inbound/event-worker.ts'
import { processInboundEvent } from '../../../../src/webhooks/inbound/handle-event.ts'
import type { SignatureState } from '../../../../src/webhooks/inbound/inbound-event.ts'
import { InboundQueue } from '../../../../src/webhooks/inbound/inbound-queue.ts'
import { createSourceReader } from '../../../../src/webhooks/inbound/source.ts'
import { findInboundEvent } from '../../../../src/webhooks/inbound/sql/inbound-event.ts'
import { insertInboundEvents } from '../../../../src/webhooks/inbound/sql/receive.ts'
import type { HintedSyncs } from '../../../../src/webhooks/inbound/sync-hints.ts'
import { accountsFixture, FIELDS_CONFIG } from '../../platform/accounts/fixture.ts'

/** The address of an account or an installation. */
export interface TestAddress {
  readonly kind: 'integrated_account' | 'environment_integration'
  readonly id: string
  readonly environmentIntegrationId: string
}

/** A received webhook that is not the default. */
export interface TestDelivery {
  readonly headers?: readonly (readonly [string, string])[]
  readonly signature?: SignatureState
  readonly query?: string
  readonly payload?: Json
  readonly providerTime?: Date
}

/** An event of the outbox as the tests look at it. */
export interface RecordedEvent {
  readonly id: string
  readonly type: string
  readonly payload: JsonObject
  readonly accountId: string | null
}

/** A line of what a delivery led to. */
export interface StoredItem {
  readonly index: number
  readonly state: string
  readonly accountId: string | null
  readonly value: string | null
  readonly eventId: string | null
  readonly resource: string | null
  readonly recordId: string | null
  readonly detail: string | null
  readonly isReplay: boolean
}

/** Accounts, received webhooks, and the worker side that processes them; nothing runs that a test did not ask for. */
export async function processFixture() {
  const fixture = await accountsFixture()
  const { database, tx, own, secrets, accountDeps, addIntegration, install, connect } = fixture
  const evaluator = createEvaluator()
  const syncs = new TestSyncs()
  const accounts = { ...accountDeps, database, definitions: createDefinitionCache(secrets) }
  const publicUrl = () => 'https://patchbay.example.com'
  const sources = createSourceReader({ database, clock: systemClock, accounts, publicUrl })
  const deps = {
    database,
    accounts,
    sources,
    evaluator,
    syncs,
    publicUrl,
    logger: silentLogger,
  }

  /** A worker of its own; `holder` tells it from others. */
  function processor(more: { readonly holder?: string; readonly leaseMs?: number } = {}): InboundProcessor {
    return new InboundProcessor({
      queue: queue(more.leaseMs),
      process: (lease) => processInboundEvent(deps, lease),
      clock: systemClock,
      random: Math.random,
      logger: silentLogger,
      holder: more.holder ?? 'test',
      onError: () => undefined,
    })
  }

  function queue(leaseMs = 30_000): InboundQueue {
    const retry = { baseMs: 0, factor: 1, maxMs: 0, jitterFloor: 1 }
    const policy = { leaseMs, stopGraceMs: 1_000, attemptsMax: 3, retry }
    return new InboundQueue({ database, random: () => 0.5, policy, accounts: accountDeps })
  }

  /** Processes everything that waits. */
  async function processAll(): Promise<void> {
    const worker = processor()
    while (await worker.claimOnce()) await worker.idle()
  }

  /** Stores a request as reception does. @returns its id */
  async function receive(address: TestAddress, body: Json | string, more: TestDelivery = {}): Promise<string> {
    const { headers = [['Content-Type', 'application/json']], signature = 'none', payload = null } = more
    const id = newId()
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    await insertInboundEvents(tx, [
      {
        environmentId: own.environmentId,
        id,
        sourceKind: address.kind,
        sourceId: address.id,
        environmentIntegrationId: address.environmentIntegrationId,
        integratedAccountId: address.kind === 'integrated_account' ? address.id : null,
        method: 'POST',
        path: `/integrated-account-webhook/${address.id}`,
        query: more.query ?? '',
        remoteAddress: '192.0.2.1',
        bodyBytes: bytes.byteLength,
        state: 'received',
        signature,
        dedupe: undefined,
        providerTime: more.providerTime ?? null,
        trace: { signature: { kind: 'valid' } },
        headers,
        body: bytes,
        payload,
      },
    ])
    return id
  }

  /** An account of a definition with this webhook block. */
  async function accountWith(webhook: JsonObject, context: JsonObject = {}, environmentVariables: JsonObject = {}) {
    const { id: integrationId } = await addIntegration({ config: { ...FIELDS_CONFIG, webhook } }, own)
    const override = { environment_variables: environmentVariables }
    const installation = await install({ integrationId, override }, own)
    return await accountOf(installation.id, context)
  }

  /** A further account of an installation, and both addresses. */
  async function accountOf(environmentIntegrationId: string, context: JsonObject = {}, tenantId = 'acme') {
    const account = await connect({ environmentIntegrationId, context, tenantId })
    const address: TestAddress = { kind: 'integrated_account', id: account.id, environmentIntegrationId }
    const installation: TestAddress = {
      kind: 'environment_integration',
      id: environmentIntegrationId,
      environmentIntegrationId,
    }
    return { ...account, address, installation }
  }

  return {
    ...fixture,
    deps,
    syncs,
    queue,
    processor,
    processAll,
    receive,
    accountWith,
    accountOf,
    find: async (id: string) => {
      const event = await findInboundEvent(tx, own.environmentId, id)
      if (event === undefined) throw new Error('no such inbound event')
      return event
    },
    /** Events of records that a webhook led to, oldest first. */
    eventsOf: async (inboundEventId: string): Promise<readonly RecordedEvent[]> =>
      await query(
        tx,
        `select id, type, payload, integrated_account_id as "accountId" from event
         where type like 'record:%' and payload ->> 'inbound_event_id' = :inboundEventId order by id`,
        { inboundEventId },
      ),
    itemsOf: async (inboundEventId: string): Promise<readonly StoredItem[]> =>
      await query(
        tx,
        `select index, state, integrated_account_id as "accountId", lookup_value as value, event_id as "eventId", resource,
           record_id as "recordId", detail, is_replay as "isReplay"
         from inbound_item where inbound_event_id = :inboundEventId order by index`,
        { inboundEventId },
      ),
  }
}

/** Triggers of syncs as a test needs them. */
class TestSyncs implements HintedSyncs {
  triggers: readonly string[] = []
  failure: Error | undefined
  readonly started: unknown[] = []

  async findTriggers(): Promise<readonly string[]> {
    return this.triggers
  }

  async startRuns(_: unknown, hint: Parameters<HintedSyncs['startRuns']>[1]) {
    if (this.failure !== undefined) throw this.failure
    const { integratedAccountId, resource } = hint
    this.started.push({ integratedAccountId, resource })
    return this.triggers.map((triggerId) => ({ triggerId, kind: 'started' as const, runId: newId() }))
  }
}
