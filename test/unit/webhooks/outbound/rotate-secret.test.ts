import { Webhook } from 'standardwebhooks'
import { expect, it } from 'vitest'
import { WebhookService } from '../../../../gen/patchbay/v1/webhook_service_pb.ts'
import { startTestApp } from '../../../support/app.ts'
import { caseCount } from '../../../support/case-count.ts'
import { startReceiver } from '../../../support/webhook-receiver.ts'

const app = await startTestApp({ PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' })
const [client] = app.clients()
if (client === undefined) throw new Error('no client')
const { createWebhook, rotateWebhookSecret, testWebhook } = WebhookService.method

/** Whether a request has a signature of the secret. */
function isSignedBy(secret: string, { headers, body }: { readonly headers: object; readonly body: string }): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}

it('no delivery of either worker is signed with the old secret alone after the answer to a rotation', async () => {
  app.startWorker()
  app.startWorker()
  await using receiver = await startReceiver()
  const created = await client.ok(createWebhook, { target_url: receiver.url, event_types: ['webhook:disabled'] })
  const id = String(created.id)
  let isOver = false
  const send = async () => {
    while (!isOver) await client.ok(testWebhook, { id, event_type: 'webhook:disabled' })
  }
  const sending = [send(), send()]
  try {
    for (let rotations = 0; rotations < caseCount(1, 3); rotations++) {
      const known = receiver.received.length
      // Both workers have the secrets that are valid now.
      await expect.poll(() => receiver.received.length).toBeGreaterThan(known + 20)
      const secret = String((await client.ok(rotateWebhookSecret, { id })).secret)
      const answered = receiver.received.length
      await expect.poll(() => receiver.received.length).toBeGreaterThan(answered + 20)
      const later = receiver.received.slice(answered)
      expect(later.filter((request) => !isSignedBy(secret, request))).toEqual([])
      expect(later.every((request) => isSignedBy(String(created.secret), request))).toBe(true)
    }
  } finally {
    isOver = true
    await Promise.all(sending)
  }
})
