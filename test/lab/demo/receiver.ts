import { randomBytes } from 'node:crypto'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import { type Received, type ReceiverResponse, startReceiver } from '../../support/webhook-receiver.ts'
import { printFact } from './report.ts'

/** Event body: the fields that the demo reads. */
interface EventBody {
  readonly event: string
  readonly payload: {
    /** Of the events about a whole run. */
    readonly id?: string
    readonly scheduled_for?: string
    readonly error?: { readonly message: string }
    /** Of the events about a part of one. */
    readonly sync_job_run_id?: string
    readonly resource?: string
    readonly sequence?: number
    readonly records?: readonly { readonly id: number }[]
  }
}

/** A delivery with a valid signature. */
export interface VerifiedDelivery {
  readonly messageId: string
  readonly path: string
  /** `started`, `record`, …: what follows `sync_job_run:`. */
  readonly event: string
  readonly runId: string
  readonly scheduledFor: string | undefined
  readonly resource: string | undefined
  readonly sequence: number | undefined
  /** Identifiers of the records; undefined when the event carries none. */
  readonly recordIds: readonly number[] | undefined
  readonly problem: string | undefined
}

/** Webhook receiver of the customer: accepts deliveries signed with the secret of their path, once each, and rejects the others. */
export interface Receiver extends AsyncDisposable {
  /** URL of a path. */
  urlOf(path: string): string
  /** Sets the secret with which deliveries to a path are signed. */
  trust(path: string, secret: string): void
  /** The first valid delivery of records, as received. */
  sample(): Received | undefined
  /** Valid deliveries, including duplicates. */
  readonly verified: number
  /** Valid deliveries of a message that was received before. */
  readonly duplicates: number
  /** Deliveries with an invalid signature. */
  readonly rejected: number
}

/** Starts the receiver; `onVerified` is called once per message, in the order of arrival, before it is acknowledged. */
export async function startVerifyingReceiver(onVerified: (delivery: VerifiedDelivery) => void): Promise<Receiver> {
  const secrets = new Map<string, Webhook>()
  const seen = new Set<string>()
  const counts = { verified: 0, duplicates: 0, rejected: 0 }
  let sample: Received | undefined

  const answer = (request: Received): ReceiverResponse => {
    const body = verifiedBody(secrets.get(request.path), request)
    if (body === undefined) {
      counts.rejected += 1
      return { status: 401 }
    }
    const delivery = readDelivery(request, body)
    counts.verified += 1
    if (seen.has(delivery.messageId)) counts.duplicates += 1
    else onVerified(delivery)
    seen.add(delivery.messageId)
    if (delivery.event === 'record') sample ??= request
    return { status: 204 }
  }

  const server = await startReceiver(answer)
  return {
    urlOf: (path) => new URL(path, server.url).href,
    trust: (path, secret) => secrets.set(path, new Webhook(secret)),
    sample: () => sample,
    get verified() {
      return counts.verified
    },
    get duplicates() {
      return counts.duplicates
    },
    get rejected() {
      return counts.rejected
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** The body if the signature is valid; a path without a secret accepts nothing. */
function verifiedBody(secret: Webhook | undefined, { body, headers }: Received): EventBody | undefined {
  try {
    return secret?.verify(body, headers as Record<string, string>) as EventBody | undefined
  } catch (error) {
    if (error instanceof WebhookVerificationError) return undefined
    throw error
  }
}

function readDelivery({ path, headers }: Received, { event, payload }: EventBody): VerifiedDelivery {
  return {
    messageId: String(headers['webhook-id']),
    path,
    event: event.replace(/^sync_job_run:/, ''),
    runId: payload.sync_job_run_id ?? payload.id ?? '',
    scheduledFor: payload.scheduled_for,
    resource: payload.resource,
    sequence: payload.sequence,
    recordIds: payload.records?.map(({ id }) => id),
    problem: payload.error?.message,
  }
}

const REJECTED_STATUS = 401

/**
 * Sends forged deliveries: a changed body with its original signature, and one signed with another secret.
 *
 * @returns how many were sent
 */
export async function sendForgeries(url: string, genuine: Received): Promise<number> {
  const id = String(genuine.headers['webhook-id'])
  const now = new Date()
  const other = new Webhook(randomBytes(32).toString('base64'))
  const forgeries = [
    {
      what: 'a changed record',
      body: withChangedRecord(genuine.body),
      headers: signatureHeaders(genuine),
    },
    {
      what: 'another secret',
      body: genuine.body,
      headers: {
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
        'webhook-signature': other.sign(id, now, genuine.body),
      },
    },
  ]
  for (const { what, body, headers } of forgeries) {
    const { status } = await fetch(url, { method: 'POST', headers, body })
    printFact(what, status === REJECTED_STATUS ? `rejected with ${status}` : `answered ${status}: ACCEPTED`)
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
