import { Webhook } from 'standardwebhooks'
import { type Received, type ReceiverResponse, startReceiver } from '../../support/webhook-receiver.ts'

/** An attempt as the receiver saw it. */
export interface ReceivedAttempt {
  readonly messageId: string
  readonly body: string
  readonly event: string
  /** Number of the issue that the event is about. */
  readonly issue: number
  /** Signatures in the header: one per secret that is valid. */
  readonly signatures: number
  /** Whether the signature is that of the secret in use. */
  readonly isGenuine: boolean
  /** What was answered. */
  readonly status: number
}

/** Receiver of events about issues: verifies each with the one secret that it knows, and can be made to fail. */
export interface IssueReceiver extends AsyncDisposable {
  readonly url: string
  /** In the order of arrival. */
  readonly attempts: readonly ReceivedAttempt[]
  /** Replaces the secret in use. */
  useSecret(secret: string): void
  /** Answers the next attempts with these statuses, although their signatures are right. */
  failNext(statuses: readonly number[]): void
  /** Issues whose event was accepted, each once. */
  acceptedIssues(): ReadonlySet<number>
}

/** Starts the receiver; `onAttempt` is called after each. */
export async function startIssueReceiver(onAttempt: (attempt: ReceivedAttempt) => void): Promise<IssueReceiver> {
  const attempts: ReceivedAttempt[] = []
  const failures: number[] = []
  let secret: string | undefined

  const answer = (request: Received): ReceiverResponse => {
    const isGenuine = secret !== undefined && hasSignature(secret, request)
    const status = isGenuine ? (failures.shift() ?? 204) : 401
    const attempt = { ...readAttempt(request), isGenuine, status }
    attempts.push(attempt)
    onAttempt(attempt)
    return { status }
  }

  const server = await startReceiver(answer)
  return {
    url: new URL('/hooks/issues', server.url).href,
    attempts,
    useSecret: (next) => {
      secret = next
    },
    failNext: (statuses) => failures.push(...statuses),
    acceptedIssues: () => new Set(attempts.filter(({ status }) => status === 204).map(({ issue }) => issue)),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function hasSignature(secret: string, { body, headers }: Received): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}

function readAttempt({ body, headers }: Received): Omit<ReceivedAttempt, 'isGenuine' | 'status'> {
  const { event, payload } = JSON.parse(body)
  return {
    messageId: String(headers['webhook-id']),
    body,
    event,
    issue: Number(payload.record_id),
    signatures: String(headers['webhook-signature']).split(' ').length,
  }
}
