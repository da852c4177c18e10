import { createHmac, randomBytes } from 'node:crypto'
import type { RunningProduct } from '../../support/product.ts'
import { expectJson, type JsonAnswer } from '../../support/rest.ts'
import { type GitHub, OWNER } from './github.ts'
import { type IssueReceiver, type ReceivedAttempt, startIssueReceiver } from './issue-receiver.ts'
import { counted, printCheck, printFact } from './report.ts'
import type { DemoSession } from './session.ts'
import { connectAccount, type DemoSetup } from './setup.ts'

/** It has no issues before. */
const REPOSITORY = 'quiet-place'
/** 503 is tried again after five seconds; 410 turns the webhook off. */
const FAILURES = [503, 410] as const
/** Issues opened before the receiver changes over to the new secret, and after. */
const ISSUES_PER_SECRET = 5
/** The receiver, and both webhooks of the first steps, ask for `record:*`. */
const WEBHOOKS = 3

/** What the webhook steps need. */
export interface WebhookDemoDeps {
  readonly session: DemoSession
  readonly stack: AsyncDisposableStack
  readonly product: RunningProduct
  readonly github: GitHub
  readonly setup: DemoSetup
  readonly step: (title: string) => void
}

/** What the steps share. */
interface WebhookScene extends WebhookDemoDeps {
  readonly receiver: IssueReceiver
  readonly webhookId: string
  readonly accountId: string
  /** Prints a check and notes its label if it failed. */
  readonly check: (label: string, text: string, isCorrect: boolean) => void
}

/**
 * GitHub sends signed webhooks; a receiver gets each as an event, although it fails, is turned off, and changes its secret.
 *
 * @returns the names of failed checks
 */
export async function demonstrateWebhooks(deps: WebhookDemoDeps): Promise<readonly string[]> {
  const { session, stack, setup, step } = deps
  const problems: string[] = []
  const check = (label: string, text: string, isCorrect: boolean): void => {
    printCheck(label, text, isCorrect)
    if (!isCorrect) problems.push(label)
  }

  step('Webhooks of GitHub, ordered by the shipped definition')
  const receiver = stack.use(
    await startIssueReceiver(({ event, issue, isGenuine }) => {
      if (!isGenuine) session.abort(`${event} of issue ${issue} has no signature of the secret that the receiver knows`)
      session.notify()
    }),
  )
  const webhook = await setup.post('/webhook', { target_url: receiver.url, event_types: ['record:*'] })
  receiver.useSecret(webhook.secret)
  printFact('webhook', `${receiver.url}, for record:*`)
  const scene = { ...deps, receiver, webhookId: webhook.id, accountId: await connectWithWebhooks(deps), check }

  receiver.failNext(FAILURES)
  await receiveFirstWebhook(scene)

  step('A receiver that fails')
  await recoverFailedDelivery(scene)
  await replayDelivery(scene)

  step('Another secret without a lost delivery')
  const opened = await rotateSecret(scene, webhook.secret)
  await verifyEveryDelivery(scene, 1 + opened)
  return problems
}

/** Connects an account whose context names a repository, and waits until GitHub has the address. @returns its id */
async function connectWithWebhooks({ session, github, setup }: WebhookDemoDeps): Promise<string> {
  const context = { webhooks: { owner: OWNER, repo: REPOSITORY } }
  const { id } = await connectAccount({ ...setup, session }, 'globex', github.token, context)
  const subscription = await session.pollFor('GitHub to accept the order of webhooks', async () => {
    const { webhook_subscriptions } = await setup.get(`/integrated-account/${id}`)
    return webhook_subscriptions.find(({ status }: JsonAnswer) => status === 'active')
  })
  printFact('subscription', `${subscription.status}: hook of ${OWNER}/${REPOSITORY}, with a secret of its own`)
  return id
}

/** An issue is opened: GitHub signs a webhook, which changes the context of the account. Without the secret it does not. */
async function receiveFirstWebhook({ session, product, github, setup, accountId, check }: WebhookScene): Promise<void> {
  const status = await sendForgedWebhook(`${product.url}/integrated-account-webhook/${accountId}`)
  check('forged webhook', `answered ${status}`, status === 401)
  const issue = await github.openIssue(REPOSITORY)
  printFact('issue opened', `${OWNER}/${REPOSITORY}#${issue}`)
  const inbound = await session.pollFor('the webhook to be processed', async () => {
    const { inbound_events } = await setup.get(`/inbound-event?integrated_account_id=${accountId}`)
    return inbound_events.find(({ state }: JsonAnswer) => state === 'processed')
  })
  check('webhook of GitHub', `X-Hub-Signature-256 ${inbound.signature}`, inbound.signature === 'valid')
  const { context } = await setup.get(`/integrated-account/${accountId}`)
  check('context of the account', `last_issue ${context.last_issue}, by update_context`, context.last_issue === issue)
}

/** Sends what GitHub would, signed with another secret. @returns the status of the answer */
async function sendForgedWebhook(url: string): Promise<number> {
  const body = JSON.stringify({ action: 'opened', issue: { number: 666 } })
  const signature = createHmac('sha256', randomBytes(32)).update(body).digest('hex')
  const { status } = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'issues',
      'x-github-delivery': 'forged',
      'x-hub-signature-256': `sha256=${signature}`,
    },
    body,
  })
  return status
}

/** The second failure turns the webhook off; it is turned on again and gets what it has missed. */
async function recoverFailedDelivery(scene: WebhookScene): Promise<void> {
  const { session, setup, product, receiver, webhookId, check } = scene
  const failed = await session.pollFor('the delivery to fail', async () => {
    const [delivery] = await listDeliveries(scene)
    return delivery?.state === 'failed' ? await setup.get(`/webhook-delivery/${delivery.id}`) : undefined
  })
  const [first, second] = failed.attempts
  const waited = (Date.parse(second?.started_at) - Date.parse(first?.started_at)) / 1_000
  const statuses = failed.attempts.map(({ status }: JsonAnswer) => status).join(', ')
  check(failed.event_type, `answered ${statuses}; tried again after ${waited.toFixed(1)} s`, statuses === '503, 410')
  const { is_active } = await setup.get(`/webhook/${webhookId}`)
  check('webhook', `is_active ${is_active}: it answered 410`, is_active === false)

  const { url, bootstrap } = product
  await expectJson('PATCH', `${url}/webhook/${webhookId}`, bootstrap.environment_token, { is_active: true })
  const started = await setup.post(`/webhook/${webhookId}/recover`, { since: failed.created_at })
  const task = await session.pollFor('the recovery to end', async () => {
    const found = await setup.get(`/task/${started.id}`)
    if (found.state === 'failed') throw new Error(`the recovery failed: ${found.error}`)
    return found.state === 'completed' ? found : undefined
  })
  await session.waitFor('the recovered delivery', () => (receiver.acceptedIssues().size > 0 ? true : undefined))
  check('recovery', `${counted(task.done_count, 'delivery')} made, accepted`, task.done_count === 1)
}

/** The same event once more: the same id and bytes, so that the receiver can tell. */
async function replayDelivery(scene: WebhookScene): Promise<void> {
  const { session, setup, receiver, check } = scene
  const before = receiver.attempts.length
  const delivery = await session.pollFor('the recovery to be settled', async () =>
    (await listDeliveries(scene)).find(({ state }) => state === 'delivered'),
  )
  await setup.post(`/webhook-delivery/${delivery.id}/replay`, {})
  await session.waitFor('the replay', () => (receiver.attempts.length > before ? true : undefined))
  const distinct = new Set(receiver.attempts.map(({ messageId, body }) => `${messageId} ${body}`)).size
  const isAccepted = receiver.attempts.at(-1)?.status === 204
  const text = `${counted(receiver.attempts.length, 'attempt')} so far, one webhook-id, the same bytes`
  check('replay', text, isAccepted && distinct === 1)
}

/** For a day both secrets sign, so that the receiver changes over when it likes. @returns how many issues were opened */
async function rotateSecret(scene: WebhookScene, old: string): Promise<number> {
  const { session, setup, receiver, webhookId, check } = scene
  const { secret } = await setup.post(`/webhook/${webhookId}/rotate-secret`, {})
  const rotatedAt = performance.now()
  check('rotation', 'another secret', secret !== old)

  // Workers cache webhooks for a moment: until then the old secret signs alone, which the receiver still knows.
  let opened = 0
  const seconds = await session.pollFor('both secrets to sign', async () => {
    opened += 1
    const [attempt] = await receiveIssues(scene, 1)
    return attempt?.signatures === 2 ? (performance.now() - rotatedAt) / 1_000 : undefined
  })
  printFact('both secrets sign', `${seconds.toFixed(1)} s later, in delivery ${opened}`)

  for (const known of ['old', 'new'] as const) {
    receiver.useSecret(known === 'old' ? old : secret)
    const attempts = await receiveIssues(scene, ISSUES_PER_SECRET)
    const haveBoth = attempts.every(({ signatures }) => signatures === 2)
    check(`with the ${known} secret`, `${attempts.length} verified, two signatures each`, haveBoth)
  }
  return opened + 2 * ISSUES_PER_SECRET
}

/** Opens issues and waits until the receiver has accepted the events about them. @returns its attempts meanwhile */
async function receiveIssues(
  { session, github, receiver }: WebhookScene,
  count: number,
): Promise<readonly ReceivedAttempt[]> {
  const first = receiver.attempts.length
  const opened = await Promise.all(Array.from({ length: count }, () => github.openIssue(REPOSITORY)))
  await session.waitFor(`the events about ${counted(count, 'issue')}`, () =>
    opened.every((issue) => receiver.acceptedIssues().has(issue)) ? true : undefined,
  )
  return receiver.attempts.slice(first)
}

/** What GitHub holds, what the receiver accepted, and what the API lists are the same. */
async function verifyEveryDelivery(scene: WebhookScene, issues: number): Promise<void> {
  const { session, receiver, check } = scene
  const accepted = receiver.acceptedIssues()
  const text = `${issues} opened, ${accepted.size} accepted, every signature verified`
  check('issues', text, accepted.size === issues)
  const delivered = await session.pollFor('every delivery to be settled', async () => {
    const all = await listDeliveries(scene, 'all')
    return all.some(({ state }) => state === 'pending') ? undefined : all.filter(({ state }) => state === 'delivered')
  })
  const pairs = new Set(delivered.map(({ event_id, webhook_id }) => `${event_id} ${webhook_id}`)).size
  check('fan-out', `${issues} events, each delivered to ${WEBHOOKS} webhooks`, pairs === issues * WEBHOOKS)
}

/** Deliveries of created records, newest first: to the receiver of these steps, or to all webhooks. */
async function listDeliveries(
  { setup, webhookId }: WebhookScene,
  of: 'receiver' | 'all' = 'receiver',
): Promise<readonly JsonAnswer[]> {
  const filter = of === 'all' ? '' : `&webhook_id=${webhookId}`
  const { webhook_deliveries } = await setup.get(`/webhook-delivery?event_type=record:created&page_size=200${filter}`)
  return webhook_deliveries
}
