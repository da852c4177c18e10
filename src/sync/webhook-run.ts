import type { ReadyAccount } from '../accounts/index.ts'
import { Failure } from '../base/index.ts'
import type { Proxy as Engine } from '../proxy/index.ts'
import { type ClaimedRun, QUEUE_POLICY, type RunOutcome, type RunProgress } from '../queue/index.ts'
import { type DeliverDeps, findWebhookTarget, type WebhookDeps, type WebhookTarget } from '../webhooks/index.ts'
import { executeRun } from './run.ts'
import { createWebhookSink } from './sinks/webhook-sink.ts'
import { createProxySource } from './sources/proxy-source.ts'
import { verdictOn } from './verdict.ts'

/** What executing runs to webhooks needs. */
export interface WebhookRunDeps extends DeliverDeps {
  readonly database: { readonly direct: Parameters<typeof findWebhookTarget>[1] }
  readonly proxy: Pick<Engine, 'pages'>
  readonly secrets: WebhookDeps['secrets']
  readonly loadAccount: (environmentId: string, integratedAccountId: string) => Promise<ReadyAccount>
}

/**
 * Executes a claimed run whose destination is a webhook: account and receiver as they are now, job and arguments as they
 * were when the run was made.
 *
 * @returns `failed` when the account may not be called or the webhook is gone or inactive, `retry` while the database is away
 * @throws Failure LEASE_LOST, and bugs
 */
export async function executeWebhookRun(
  deps: WebhookRunDeps,
  run: ClaimedRun,
  progress: RunProgress,
  signal: AbortSignal,
): Promise<RunOutcome> {
  try {
    const ready = await deps.loadAccount(run.environmentId, run.integratedAccountId)
    const target = await receiverOf(deps, run)
    const source = createProxySource({ proxy: deps.proxy, plan: ready.plan, access: ready.access })
    const sink = createWebhookSink(deps, target, { ...run, tenantId: ready.account.tenantId }, signal)
    const { attemptsMax } = QUEUE_POLICY
    return await executeRun({ ...deps, source, sink, account: ready.access, attemptsMax }, run, progress, signal)
  } catch (error) {
    return outcomeOf(error)
  }
}

async function receiverOf(deps: WebhookRunDeps, { environmentId, destination }: ClaimedRun): Promise<WebhookTarget> {
  if (destination.kind !== 'webhook') throw new Error('a run for daemons was claimed as a run to a webhook')
  const found = await findWebhookTarget(deps, deps.database.direct, environmentId, destination.webhookId)
  if (found.kind === 'ready') return found.target
  const reason = found.kind === 'missing' ? 'WEBHOOK_NOT_FOUND' : 'WEBHOOK_INACTIVE'
  throw new Failure(reason, `the webhook of this run is ${found.kind}: name another one on the trigger`)
}

/** A refusal before the first page. @throws what is not one, and LEASE_LOST */
function outcomeOf(error: unknown): RunOutcome {
  const verdict = verdictOn(error)
  switch (verdict.kind) {
    case 'retry':
      return verdict
    case 'wait':
      return { kind: 'rate_limited', afterMs: verdict.afterMs ?? 0 }
    case 'problem':
    case 'fatal':
      return { kind: 'failed', error: verdict.error }
  }
}
