import { notFound } from '../../base/index.ts'
import { type RunDestination, webhookNotFound } from '../../queue/index.ts'
import { isForeignKeyViolation } from '../../storage/index.ts'

/** What a trigger refers to. */
interface TriggerReferences {
  readonly syncJobId?: string
  readonly integratedAccountId?: string
  readonly destination: RunDestination
}

/** Runs a write of a trigger; what was deleted since it was looked up is refused as if it had never been there. */
export async function mapReferenceErrors<Result>(
  references: TriggerReferences,
  write: () => Promise<Result>,
): Promise<Result> {
  try {
    return await write()
  } catch (error) {
    throw missingReferenceError(error, references) ?? error
  }
}

function missingReferenceError(
  error: unknown,
  { syncJobId = '', integratedAccountId = '', destination }: TriggerReferences,
) {
  if (isForeignKeyViolation(error, 'sync_job_cron_trigger_job')) return notFound('sync_job', syncJobId)
  if (isForeignKeyViolation(error, 'sync_job_cron_trigger_account'))
    return notFound('integrated_account', integratedAccountId)
  if (isForeignKeyViolation(error, 'sync_job_cron_trigger_webhook') && destination.kind === 'webhook')
    return webhookNotFound(destination.webhookId)
  return undefined
}
