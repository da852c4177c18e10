import { accountNotActive, Failure, notFound } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { ErrorHandling, RunDestination } from './run.ts'
import { findRunReferences } from './sql/run-targets.ts'

/** What a run or trigger takes from the job, account and webhook that it refers to. */
export interface RunReferences {
  /** The database's clock. */
  readonly now: Date
  readonly jobResources: readonly JsonObject[]
  readonly jobErrorHandling: ErrorHandling
  /** Of the job and of the account. */
  readonly integrationName: string
  readonly argsRules: { readonly argsSchema: JsonObject; readonly argsValidation: string }
  readonly accountStatus: string
  readonly region: string
  readonly isIntegrationEnabled: boolean
}

/** The rows that a run or trigger refers to. */
export interface RunReferenceIds {
  readonly syncJobId: string
  readonly integratedAccountId: string
  readonly destination: RunDestination
}

/**
 * Loads the references of a run or trigger, all of one environment, in one round trip.
 *
 * @throws Failure RESOURCE_NOT_FOUND for a job or account that is unknown or of another environment, WEBHOOK_NOT_FOUND,
 * INVALID_FIELD when the account is one of another integration than the job is for
 */
export async function loadRunReferences(tx: Db, environmentId: string, ids: RunReferenceIds): Promise<RunReferences> {
  const { destination, syncJobId, integratedAccountId } = ids
  const webhookId = destination.kind === 'webhook' ? destination.webhookId : null
  const found = await findRunReferences(tx, environmentId, { syncJobId, integratedAccountId, webhookId })
  const { jobIntegrationName, jobResources, jobArgsSchema, jobArgsValidation, jobErrorHandling } = found
  const { accountStatus, accountRegion, accountIntegrationName, isIntegrationEnabled } = found
  if (jobIntegrationName === null || jobResources === null || jobArgsSchema === null)
    throw notFound('sync_job', syncJobId)
  if (jobArgsValidation === null || jobErrorHandling === null) throw notFound('sync_job', syncJobId)
  if (accountStatus === null || accountRegion === null || isIntegrationEnabled === null)
    throw notFound('integrated_account', integratedAccountId)
  if (webhookId !== null && !found.hasWebhook) throw webhookNotFound(webhookId)
  if (jobIntegrationName !== accountIntegrationName)
    throw integrationMismatch(jobIntegrationName, accountIntegrationName ?? 'none')
  return {
    now: found.now,
    jobResources,
    jobErrorHandling,
    integrationName: jobIntegrationName,
    accountStatus,
    region: accountRegion,
    isIntegrationEnabled,
    argsRules: { argsSchema: jobArgsSchema, argsValidation: jobArgsValidation },
  }
}

/**
 * Rejects a run that a tick would record as skipped, for callers that wait for an answer.
 *
 * @throws Failure ACCOUNT_NOT_ACTIVE, INTEGRATION_DISABLED
 */
export function assertRunnable(subject: Pick<RunReferences, 'accountStatus' | 'isIntegrationEnabled'>): void {
  if (!subject.isIntegrationEnabled)
    throw new Failure('INTEGRATION_DISABLED', 'the integration is disabled in this environment; enable it first')
  if (subject.accountStatus !== 'active') throw accountNotActive(subject.accountStatus)
}

/** WEBHOOK_NOT_FOUND: the environment does not have the webhook. */
export function webhookNotFound(webhookId: string): Failure {
  const violation = {
    field: 'webhook_id',
    description: 'names no webhook of this environment',
    rule: 'webhook.unknown',
  }
  return new Failure('WEBHOOK_NOT_FOUND', `no webhook with id ${webhookId} in this environment`, {
    violations: [violation],
    resource: { type: 'webhook', id: webhookId },
  })
}

/** DESTINATION_REQUIRED: a run or trigger names neither webhook nor daemon group. */
export function destinationRequired(): Failure {
  const description = 'or daemon_group_key must be given: records need somewhere to go'
  return new Failure('DESTINATION_REQUIRED', `webhook_id ${description}`, {
    violations: [{ field: 'webhook_id', description, rule: 'destination.required' }],
  })
}

function integrationMismatch(jobIntegration: string, accountIntegration: string): Failure {
  const description = `is an account of the integration ${accountIntegration}, but the integration_name of the job is ${jobIntegration}`
  return new Failure('INVALID_FIELD', `integrated_account_id ${description}`, {
    violations: [{ field: 'integrated_account_id', description, rule: 'integration.mismatch' }],
  })
}
