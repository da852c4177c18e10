import type { ServiceDefinition } from '../operation.ts'
import { apiTokenService } from './api-token.ts'
import { type DaemonServiceDeps, daemonService } from './daemon.ts'
import { type EnvironmentServiceDeps, environmentService } from './environment.ts'
import { type EnvironmentIntegrationServiceDeps, environmentIntegrationService } from './environment-integration.ts'
import { type IntegratedAccountServiceDeps, integratedAccountService } from './integrated-account.ts'
import { type IntegrationServiceDeps, integrationService } from './integration.ts'
import { type ProxyServiceDeps, proxyService } from './proxy.ts'
import { type SyncJobServiceDeps, syncJobService } from './sync-job.ts'
import { type SyncJobCronTriggerServiceDeps, syncJobCronTriggerService } from './sync-job-cron-trigger.ts'
import { type SyncJobRunServiceDeps, syncJobRunService } from './sync-job-run.ts'
import { type TeamServiceDeps, teamService } from './team.ts'
import { type WebhookServiceDeps, webhookService } from './webhook.ts'

/** Everything the services need between them. */
export type ServiceDeps = TeamServiceDeps &
  EnvironmentServiceDeps &
  IntegrationServiceDeps &
  EnvironmentIntegrationServiceDeps &
  IntegratedAccountServiceDeps &
  SyncJobServiceDeps &
  SyncJobCronTriggerServiceDeps &
  SyncJobRunServiceDeps &
  DaemonServiceDeps &
  WebhookServiceDeps &
  ProxyServiceDeps

/** The services of the contract, in the order of its table. */
export function createServices(deps: ServiceDeps): readonly ServiceDefinition[] {
  return [
    teamService(deps),
    environmentService(deps),
    apiTokenService(deps),
    integrationService(deps),
    environmentIntegrationService(deps),
    integratedAccountService(deps),
    syncJobService(deps),
    syncJobCronTriggerService(deps),
    syncJobRunService(deps),
    daemonService(deps),
    webhookService(deps),
    proxyService(deps),
  ]
}
