import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import { recordWebhookOutcomes, type WebhookOutcome } from '../../../../src/webhooks/outbound/health.ts'
import { createWebhook, getWebhook, updateWebhook, webhookState } from '../../../../src/webhooks/outbound/index.ts'
import { FAILING_AFTER_ATTEMPTS, WEBHOOK_TRANSITIONS } from '../../../../src/webhooks/outbound/state.ts'
import { testDatabase } from '../../../support/database.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { transitionTable } from '../../../support/markdown.ts'
import { seedEnvironment } from '../../../support/seed-rows.ts'

const { database } = await testDatabase()
const deps = {
  secrets: createSecretStore(parseKeyRing(generateKeyRingText('k'))),
  clock: fastClock(),
  findUrlViolation: () => undefined,
}
const environmentId = await seedEnvironment(database)

const FAILED = { isAccepted: false, status: 500, isExhausted: false }
const EXHAUSTED = { ...FAILED, isExhausted: true }
const ACCEPTED = { isAccepted: true, status: 204, isExhausted: false }
const GONE = { isAccepted: false, status: 410, isExhausted: true }
type Outcome = Omit<WebhookOutcome, 'environmentId' | 'webhookId'>

/** A new webhook, and what the tests do to it. */
async function newWebhook() {
  const input = { targetUrl: 'https://example.com/hook' }
  const { webhook } = await database.transaction((tx) => createWebhook(deps, tx, environmentId, input))
  const ref = { environmentId, webhookId: webhook.id }
  return {
    record: (...outcomes: Outcome[]) =>
      database.transaction((tx) =>
        recordWebhookOutcomes(
          tx,
          outcomes.map((outcome) => ({ ...ref, ...outcome })),
        ),
      ),
    async passDays(days: number) {
      const sql = `update webhook_failure set failing_since = failing_since - :days::float8 * interval '1 day' where webhook_id = :id`
      await execute(database.pool, sql, { days, id: webhook.id })
    },
    update: (change: { readonly isActive?: boolean; readonly description?: string }) =>
      database.transaction((tx) => updateWebhook(deps, tx, environmentId, { id: webhook.id, ...change })),
    read: () => getWebhook(database.pool, environmentId, webhook.id),
    state: async () => webhookState(await getWebhook(database.pool, environmentId, webhook.id)),
    async events() {
      const rows = await query<{ type: string; payload: object }>(
        database.pool,
        'select type, payload from event where subject_id = :id order by id',
        { id: webhook.id },
      )
      return rows.map(({ type, payload }) => ({ ...payload, type, id: undefined }))
    },
  }
}

describe('the health of a webhook', () => {
  it('fails after ten attempts in a row, and the next success forgets them without an event', async () => {
    const webhook = await newWebhook()
    await webhook.record(...Array<Outcome>(FAILING_AFTER_ATTEMPTS - 1).fill(FAILED))
    expect(await webhook.state()).toBe('active')
    await webhook.record(FAILED)
    expect(await webhook.read()).toMatchObject({ failedAttempts: 10, failingSince: expect.any(Date), version: 1 })
    expect(await webhook.state()).toBe('failing')
    await webhook.record(ACCEPTED)
    expect(await webhook.read()).toMatchObject({ failedAttempts: 0, failingSince: null, version: 1 })
    expect(await webhook.events()).toEqual([])
  })

  it('announces failing once at half of five days, and the recovery', async () => {
    const webhook = await newWebhook()
    await webhook.record(FAILED)
    await webhook.passDays(2.4)
    await webhook.record(EXHAUSTED)
    expect(await webhook.events()).toEqual([])
    await webhook.passDays(0.1)
    await webhook.record(FAILED)
    await webhook.record(FAILED)
    expect(await webhook.events()).toEqual([
      { type: 'webhook:failing', failing_since: expect.any(String), failed_attempts: 3 },
    ])
    await webhook.record(ACCEPTED)
    await webhook.record(ACCEPTED)
    expect((await webhook.events()).map(({ type }) => type)).toEqual(['webhook:failing', 'webhook:recovered'])
    expect(await webhook.state()).toBe('active')
  })

  it('is disabled after five days of failures alone, when a delivery has used its last attempt', async () => {
    const webhook = await newWebhook()
    await webhook.record(FAILED)
    await webhook.passDays(5.1)
    await webhook.record(FAILED)
    expect((await webhook.read()).isActive).toBe(true)
    await webhook.record(EXHAUSTED)
    expect(await webhook.read()).toMatchObject({ isActive: false, disabledReason: 'failing', version: 2 })
    expect((await webhook.events()).at(-1)).toMatchObject({
      type: 'webhook:disabled',
      reason: 'failing',
      failed_attempts: 3,
    })
  })

  it('is not disabled when one of the attempts of five days succeeded', async () => {
    const webhook = await newWebhook()
    await webhook.record(FAILED)
    await webhook.passDays(5.1)
    await webhook.record(EXHAUSTED, ACCEPTED)
    await webhook.record(EXHAUSTED)
    expect(await webhook.state()).toBe('active')
  })

  it('is disabled at once by 410, by one of many at the same time', async () => {
    const webhook = await newWebhook()
    await Promise.all(Array.from({ length: 5 }, () => webhook.record(ACCEPTED, GONE)))
    expect(await webhook.read()).toMatchObject({ isActive: false, disabledReason: 'gone' })
    expect(await webhook.events()).toEqual([
      {
        type: 'webhook:disabled',
        reason: 'gone',
        failing_since: expect.any(String),
        failed_attempts: expect.any(Number),
      },
    ])
  })

  it('is forgotten when a caller enables the webhook; the first success then is a recovery', async () => {
    const webhook = await newWebhook()
    await webhook.record(GONE)
    const enabled = await webhook.update({ isActive: true })
    expect(enabled).toMatchObject({ isActive: true, disabledReason: null, failedAttempts: 0, failingSince: null })
    await webhook.record(FAILED)
    await webhook.record(ACCEPTED)
    expect((await webhook.events()).map(({ type }) => type)).toEqual(['webhook:disabled', 'webhook:recovered'])
  })

  it('announces failing again after a caller enabled the webhook', async () => {
    const webhook = await newWebhook()
    for (const _ of ['disabled', 'enabled, and disabled again']) {
      await webhook.record(FAILED)
      await webhook.passDays(2.6)
      await webhook.record(FAILED)
      await webhook.record(FAILED)
      await webhook.passDays(2.5)
      await webhook.record(EXHAUSTED)
      await webhook.update({ isActive: true })
    }
    const announced = ['webhook:failing', 'webhook:disabled']
    expect((await webhook.events()).map(({ type }) => type)).toEqual([...announced, ...announced])
  })

  it('says paused for a webhook that a caller turned off, and counts nothing there', async () => {
    const webhook = await newWebhook()
    await webhook.update({ isActive: false })
    await webhook.record(FAILED, EXHAUSTED)
    expect(await webhook.read()).toMatchObject({ disabledReason: null, failedAttempts: 0 })
    expect(await webhook.state()).toBe('paused')
  })

  it('is kept by other changes of the webhook', async () => {
    const webhook = await newWebhook()
    await webhook.record(FAILED)
    expect(await webhook.update({ description: 'x' })).toMatchObject({ failedAttempts: 1 })
  })

  it('ignores outcomes of a webhook that was deleted', async () => {
    const webhookId = '019a0000-0000-7000-8000-000000000001'
    const outcomes = [FAILED, GONE, ACCEPTED].map((outcome) => ({ environmentId, webhookId, ...outcome }))
    for (const outcome of outcomes) await database.transaction((tx) => recordWebhookOutcomes(tx, [outcome]))
  })
})

const README = join(import.meta.dirname, '../../../../src/webhooks/README.md')

it('the README lists every transition of a webhook', () => {
  expect(readFileSync(README, 'utf8')).toContain(`\n${transitionTable(WEBHOOK_TRANSITIONS)}\n<!-- end -->`)
})
