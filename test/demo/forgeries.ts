import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { Received } from '../webhooks/receiver.ts'
import { printFact } from './report.ts'

const REFUSED_STATUS = 401

/**
 * Sends the receiver what somebody without the secret could: a delivery changed under its true signature, and one that is
 * signed properly with another secret.
 *
 * @returns how many were sent
 */
export async function sendForgeries(url: string, genuine: Received): Promise<number> {
  const id = String(genuine.headers['webhook-id'])
  const now = new Date()
  const stranger = new Webhook(randomBytes(32).toString('base64'))
  const forgeries = [
    {
      what: 'a changed record',
      body: withChangedRecord(genuine.body),
      headers: signatureHeaders(genuine),
    },
    {
      what: "a stranger's secret",
      body: genuine.body,
      headers: {
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
        'webhook-signature': stranger.sign(id, now, genuine.body),
      },
    },
  ]
  for (const { what, body, headers } of forgeries) {
    const { status } = await fetch(url, { method: 'POST', headers, body })
    printFact(what, status === REFUSED_STATUS ? `refused with ${status}` : `answered ${status}: BELIEVED`)
  }
  return forgeries.length
}

function withChangedRecord(body: string): string {
  const event = JSON.parse(body)
  event.payload.records[0].id += 1
  return JSON.stringify(event)
}

function signatureHeaders({ headers }: Received): Record<string, string> {
  const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature']
  return Object.fromEntries(names.map((name) => [name, String(headers[name])]))
}
