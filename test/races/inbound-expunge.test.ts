import { expect, it } from 'vitest'
import { execute, query } from '../../src/foundation/database/index.ts'
import { processInboundEvent } from '../../src/webhooks/inbound/handle-event.ts'
import { InboundQueue } from '../../src/webhooks/inbound/inbound-queue.ts'
import { expungeInboundEvent } from '../../src/webhooks/inbound/index.ts'
import { fastClock } from '../support/fast-clock.ts'
import { interleavings, type Lane } from '../support/interleavings.ts'
import { processFixture } from '../unit/webhooks/inbound/process-fixture.ts'

const { tx, own, target, deps, accountDeps, receive, accountWith, find, eventsOf } = await processFixture()
const { environmentId } = own
const { expectAlways } = interleavings(target, fastClock())
const CONTENT = 'personal-data'
const { address } = await accountWith({
  events: '{"event": "created", "resource": "contacts", "id": body.id, "data": body}',
  handle_verification: '{"type": "payload", "update_context": {"said": body.id}}',
})

/** Claims what waits, processes it and stores what it leads to, as a worker does. */
async function process({ database }: Lane): Promise<void> {
  const queue = new InboundQueue({ database, random: () => 0.5, accounts: accountDeps })
  for (const lease of await queue.claim('test', 1))
    await queue.finish({ lease, outcome: await processInboundEvent({ ...deps, database }, lease) })
}

it('a request that is expunged before it is processed leads to nothing', async () => {
  await expectAlways<string>({
    async arrange() {
      for (const table of ['inbound_queue', 'inbound_lease']) await execute(tx, `truncate ${table}`)
      await execute(tx, "update integrated_account set context = context - 'said'")
      return await receive(address, { id: CONTENT }, { signature: 'valid' })
    },
    operations: (id) => [
      process,
      (lane) => lane.database.transaction((each) => expungeInboundEvent(each, environmentId, id)),
    ],
    async check(id, results) {
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
      const { state, error, trace } = await find(id)
      const { length: events } = await eventsOf(id)
      const { length: contexts } = await query(
        tx,
        "select from integrated_account where context ->> 'said' is not null",
      )
      const isProcessed = state === 'processed'
      expect({ reason: error?.reason, events, contexts }).toEqual(
        isProcessed
          ? { reason: undefined, events: 1, contexts: 1 }
          : { reason: 'CONTENT_EXPUNGED', events: 0, contexts: 0 },
      )
      // What the caller of the expunge was told.
      const [, expunged] = results
      expect(expunged).toMatchObject({ value: { state: isProcessed ? 'processed' : expect.anything() } })
      expect(JSON.stringify(trace)).not.toContain(CONTENT)
    },
  })
})
