import type { Timestamp } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import { WebhookService } from '../../../gen/patchbay/v1/webhook_service_pb.ts'
import type { Tx } from '../../database/index.ts'
import { startTask } from '../../tasks/index.ts'
import { getWebhook } from '../../webhooks/index.ts'
import { environmentIdOf } from '../caller.ts'
import type { Finding } from '../operation.ts'
import type { IdempotencyDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { taskToProto } from './task.ts'
import { dateFrom } from './values.convert.ts'

const { recoverWebhookDeliveries, replayMissingWebhookDeliveries } = WebhookService.method

/** A webhook and a range of time. */
interface RecoveryRequest {
  readonly id: string
  readonly since?: Timestamp | undefined
  readonly until?: Timestamp | undefined
}

/** The operations that send in the background what a webhook did not get. */
export function webhookRecoveryHandlers(
  deps: IdempotencyDeps,
): Pick<ServiceImpl<typeof WebhookService>, 'recoverWebhookDeliveries' | 'replayMissingWebhookDeliveries'> {
  return {
    recoverWebhookDeliveries: (request, context) =>
      runIdempotent(deps, environmentIdOf(context), recoverWebhookDeliveries, request, (tx) =>
        startRecovery(tx, environmentIdOf(context), 'recover_deliveries', request),
      ),
    replayMissingWebhookDeliveries: (request, context) =>
      runIdempotent(deps, environmentIdOf(context), replayMissingWebhookDeliveries, request, (tx) =>
        startRecovery(tx, environmentIdOf(context), 'replay_missing_deliveries', request),
      ),
  }
}

async function startRecovery(tx: Tx, environmentId: string, kind: string, { id, since, until }: RecoveryRequest) {
  const webhook = await getWebhook(tx, environmentId, id)
  const range = { since: dateFrom(since)?.toISOString() ?? null, until: dateFrom(until)?.toISOString() ?? null }
  return taskToProto(await startTask(tx, { environmentId, kind, params: { webhook_id: webhook.id, ...range } }))
}

/** A finding when a range of time has no moment in it. */
export function checkRange({ since, until }: Pick<RecoveryRequest, 'since' | 'until'>): readonly Finding[] {
  const [from, to] = [dateFrom(since), dateFrom(until)]
  if (from === undefined || to === undefined || from < to) return []
  return [{ field: 'until', description: 'must be after since', rule: 'until.after_since' }]
}
