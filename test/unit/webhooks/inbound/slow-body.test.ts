import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { createReceiver } from '../../../../src/webhooks/inbound/index.ts'
import { processFixture, type TestAddress } from './process-fixture.ts'
import { SECRET, signatureOf } from './receive-fixture.ts'

const { tx, database, deps, accountWith } = await processFixture()

/** Milliseconds that the clock of the receiver is ahead. */
let aheadMs = 0
const receive = createReceiver({
  ...deps,
  database,
  accounts: deps.accounts,
  clock: { ...systemClock, now: () => systemClock.now(), monotonicMs: () => systemClock.monotonicMs() + aheadMs },
  http: { send: () => Promise.reject(new Error('no requests')) },
  isSubscribing: async () => false,
})

const WEBHOOK: JsonObject = {
  signature_verification: {
    format: 'hmac',
    config: { secret: '{{connection.webhook.hook_secret}}', parts: ['$body'], compare_with: '$header.x-signature' },
  },
  handle_verification:
    '$exists(headers."x-hook-secret") ? {"type": "verify", "update_context": {"hook_secret": headers."x-hook-secret"}}',
  secret_context: ['hook_secret'],
}

/** Sends a request, whose body arrives after `meanwhile`. @returns the status of the answer */
async function send(
  { kind, id }: TestAddress,
  headers: Readonly<Record<string, string>>,
  meanwhile: () => Promise<unknown> = async () => undefined,
): Promise<number> {
  const answer = await receive(
    { kind, id },
    {
      method: 'POST',
      path: '/',
      query: '',
      headers: Object.entries(headers),
      remoteAddress: '192.0.2.1',
      readBody: async () => {
        await meanwhile()
        return Buffer.from('{}')
      },
    },
  )
  return answer.status
}

const bring = (address: TestAddress, secret: string, meanwhile?: () => Promise<unknown>) =>
  send(address, { 'x-hook-secret': secret }, meanwhile)

const deliver = (address: TestAddress, secret: string, meanwhile?: () => Promise<unknown>) =>
  send(address, { 'x-signature': signatureOf('{}', secret) }, meanwhile)

const setStatus = (id: string, status: string) =>
  execute(tx, 'update integrated_account set status = :status where id = :id', { id, status })

describe('a request whose body arrives late', () => {
  it('does not replace the secret that was agreed in the meantime', async () => {
    const { address, id } = await accountWith(WEBHOOK)
    await setStatus(id, 'connecting')
    const late = await bring(address, 'the secret of a forger', async () => {
      expect(await bring(address, SECRET)).toBe(200)
      await setStatus(id, 'active')
    })
    expect(late).toBe(401)
    expect(await deliver(address, SECRET)).toBe(200)
    expect(await deliver(address, 'the secret of a forger')).toBe(401)
  })

  it('is one of two handshakes of an installation, of which only one counts', async () => {
    const { installation } = await accountWith(WEBHOOK)
    const both = Promise.withResolvers<void>()
    let waiting = 0
    const meanwhile = async () => {
      waiting += 1
      if (waiting === 2) both.resolve()
      await both.promise
    }
    const secrets = ['one secret', 'another secret']
    const answers = await Promise.all(secrets.map((secret) => bring(installation, secret, meanwhile)))
    expect(answers.toSorted()).toEqual([200, 401])
    expect(await Promise.all(secrets.map((secret) => deliver(installation, secret)))).toEqual(answers)
  })

  it('is verified with the secret that is valid when it has arrived', async () => {
    const { address, id } = await accountWith(WEBHOOK)
    await setStatus(id, 'connecting')
    await bring(address, 'the secret before')
    const late = await deliver(address, 'the secret before', async () => {
      await bring(address, SECRET)
      aheadMs += 1_000
    })
    expect(late).toBe(401)
  })

  it('is not accepted by an installation that was disabled in the meantime', async () => {
    const { address, id } = await accountWith(WEBHOOK)
    await setStatus(id, 'connecting')
    await bring(address, SECRET)
    const late = deliver(address, SECRET, async () => {
      const disable = 'update environment_integration set is_enabled = false where id = :id'
      await execute(tx, disable, { id: address.environmentIntegrationId })
      aheadMs += 1_000
    })
    await expect(late).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})
