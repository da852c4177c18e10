import { withCause } from '../../engine/proxy/index.ts'
import { Failure } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import type { Lease } from '../../foundation/queue/index.ts'
import { LEASE_EXPIRED } from '../../foundation/queue/index.ts'
import { findIntegratedAccount, type ResolvedAccount } from '../../platform/accounts/index.ts'
import type { UnifiedMethodRef } from '../../platform/unified-config/index.ts'
import {
  type DeliverDeps,
  findWebhookTarget,
  type LoadedWebhook,
  type LoadWebhookDeps,
  withCurrentSecrets,
} from '../../webhooks/outbound/index.ts'
import type { QueuedRun, RunOutcome, RunProgress } from '../runs/run.ts'
import { type AccountSourceDeps, createAccountSource } from './account-source.ts'
import { type Checkpoint, readCheckpoint } from './checkpoint.ts'
import { startFailureOutcome } from './page-outcome.ts'
import type { PageSource } from './page-source.ts'
import { executeRun, type SyncRunDeps } from './run.ts'
import {
  decideEnding,
  deliverEnding,
  type EndingDeps,
  endingOutcome,
  retryOrPostpone,
  storeEnding,
} from './run-ending.ts'
import type { MappingFinder } from './unified-nodes.ts'
import { createWebhookSink } from './webhook-sink.ts'

/** The dependencies of executing runs to webhooks. */
export interface WebhookRunDeps extends DeliverDeps {
  readonly database: Pick<Database, 'pool'>
  readonly proxy: AccountSourceDeps['proxy']
  readonly unified: AccountSourceDeps['unified']
  readonly mappings: MappingFinder
  readonly secrets: LoadWebhookDeps['secrets']
  readonly loadAccount: (environmentId: string, integratedAccountId: string) => Promise<ResolvedAccount>
  /** Logs a warning about a run. */
  readonly warn: Required<SyncRunDeps>['warn']
}

/**
 * Executes a claimed run whose destination is a webhook: with the current account and receiver, and with the resources and
 * arguments of the run. A run that cannot start, because its account may not be called, fails like any other: the receiver gets
 * the event. A run whose ending is stored only delivers it.
 *
 * @returns `failed` when the account may not be called or the webhook is deleted or inactive, `retry` while the database is
 * unavailable
 * @throws Failure LEASE_LOST, and bugs
 */
export async function executeWebhookRun(
  deps: WebhookRunDeps,
  run: Lease<QueuedRun>,
  progress: RunProgress,
  signal: AbortSignal,
): Promise<RunOutcome> {
  const target = await catchOutcome(() => loadWebhookTarget(deps, run))
  if ('kind' in target) return run.ending === null ? target : endingOutcome(run.ending)
  const checkpoint = readCheckpoint(run.checkpoint)
  if (run.ending !== null) {
    const ending = await endingDeps(deps, run, target, progress, signal)
    return await deliverEnding(ending, checkpoint, run.ending, run.resourceStats)
  }
  const account = await loadAccount(deps, run)
  if (!('kind' in account)) {
    const source = sourceOf(deps, account)
    const sink = createWebhookSink(
      deps,
      target,
      { ...run, tenantId: account.account.tenantId },
      signal,
      secretsOf(deps, target),
    )
    const warn: SyncRunDeps['warn'] = (fields, message) => deps.warn({ run_id: run.id, ...fields }, message)
    const runDeps = { ...deps, source, sink, account: account.access, attemptsMax: run.attemptsMax, warn }
    return await executeRun(runDeps, run, progress, signal)
  }
  // An end before the first page; when it is permanent, the receiver gets the event.
  if (account.kind === 'retry') {
    const limit = { ...run, isLastAttempt: run.attempt >= run.attemptsMax }
    const save = async (change: Partial<Checkpoint>): Promise<RunOutcome | undefined> =>
      (await progress.save({ ...checkpoint, ...change }, run.resourceStats)) === 'stop'
        ? { kind: 'stopped' }
        : undefined
    const outcome = await retryOrPostpone(deps, limit, checkpoint, account, save)
    if (outcome !== undefined) return outcome
  } else if (account.kind !== 'failed') return account
  const ending = decideEnding(deps, run.attempt, account.error)
  const end = await endingDeps(deps, run, target, progress, signal)
  return await storeEnding(end, checkpoint, ending, run.resourceStats)
}

function sourceOf({ proxy, unified, mappings, database }: WebhookRunDeps, resolved: ResolvedAccount): PageSource {
  const { account, integrationName, plan, access } = resolved
  const mapped = { environmentId: account.environmentId, integratedAccountId: account.id, integrationName }
  const findMapping = async (ref: UnifiedMethodRef) => (await mappings.find(database.pool, mapped, ref)).plan
  return createAccountSource({ proxy, unified, findMapping }, plan, access)
}

/** The account of a run, or the outcome of the run without it; a run whose attempts are exhausted fails. */
async function loadAccount(deps: WebhookRunDeps, run: Lease<QueuedRun>): Promise<ResolvedAccount | RunOutcome> {
  if (run.attemptsExhausted) return { kind: 'failed', error: LEASE_EXPIRED }
  return await catchOutcome(async () => {
    const account = await deps.loadAccount(run.environmentId, run.integratedAccountId)
    return { ...account, access: withCause(account.access, 'run', run.id) }
  })
}

async function endingDeps(
  { database, ...deps }: WebhookRunDeps,
  run: Lease<QueuedRun>,
  target: LoadedWebhook,
  progress: RunProgress,
  signal: AbortSignal,
): Promise<EndingDeps> {
  const account = await findIntegratedAccount(database.pool, run.environmentId, run.integratedAccountId)
  const sink = createWebhookSink(
    deps,
    target,
    { ...run, tenantId: account?.tenantId ?? null },
    signal,
    secretsOf({ database, ...deps }, target),
  )
  return { ...deps, sink, progress, giveUpAfterSeconds: run.giveUpAfterSeconds }
}

/** The secrets of the receiver at the moment: they may be rotated while the run goes on. */
function secretsOf(deps: WebhookRunDeps, target: LoadedWebhook): () => Promise<readonly string[]> {
  let current = target
  return async () => {
    current = await withCurrentSecrets(deps, deps.database.pool, current)
    return current.secrets
  }
}

async function loadWebhookTarget(
  deps: WebhookRunDeps,
  { environmentId, destination }: Lease<QueuedRun>,
): Promise<LoadedWebhook> {
  if (destination.kind !== 'webhook') throw new Error('a run for daemons was claimed as a run to a webhook')
  const found = await findWebhookTarget(deps, deps.database.pool, environmentId, destination.webhookId)
  if (found.kind === 'ready') return found.target
  const reason = found.kind === 'missing' ? 'WEBHOOK_NOT_FOUND' : 'WEBHOOK_INACTIVE'
  throw new Failure(reason, `the webhook of this run is ${found.kind}: name another one on the trigger`)
}

/** The loaded value, or the outcome of the run when loading fails. @throws LEASE_LOST, and errors that are bugs */
async function catchOutcome<Loaded extends object>(load: () => Promise<Loaded>): Promise<Loaded | RunOutcome> {
  try {
    return await load()
  } catch (error) {
    return startFailureOutcome(error)
  }
}
