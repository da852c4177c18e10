import type { ServiceDefinition } from '../operation.ts'
import { apiTokenService } from './api-token.ts'
import { auditService } from './audit.ts'
import { callLogService } from './call-log.ts'
import { catalogService } from './catalog.ts'
import { daemonService } from './daemon.ts'
import type { ServiceDeps } from './deps.ts'
import { environmentService } from './environment.ts'
import { environmentIntegrationService } from './environment-integration.ts'
import { eventService } from './event.ts'
import { inboundEventService } from './inbound-event.ts'
import { integratedAccountService } from './integrated-account.ts'
import { integrationService } from './integration.ts'
import { linkTokenService } from './link-token.ts'
import { overviewService } from './overview.ts'
import { proxyService } from './proxy.ts'
import { withSealedPages } from './sealed-pages.ts'
import { syncJobService } from './sync-job.ts'
import { syncJobCronTriggerService } from './sync-job-cron-trigger.ts'
import { syncJobRunService } from './sync-job-run.ts'
import { taskService } from './task.ts'
import { teamService } from './team.ts'
import { toolServerService } from './tool-server.ts'
import { unifiedService } from './unified.ts'
import { unifiedMappingService } from './unified-mapping.ts'
import { unifiedModelService } from './unified-model.ts'
import { webhookService } from './webhook.ts'

/** The services of the contract, in the order of its table. */
export function createServices(deps: ServiceDeps): readonly ServiceDefinition[] {
  const services = [
    teamService(deps),
    environmentService(deps),
    apiTokenService(deps),
    integrationService(deps),
    environmentIntegrationService(deps),
    catalogService(deps),
    integratedAccountService(deps),
    linkTokenService(deps),
    syncJobService(deps),
    syncJobCronTriggerService(deps),
    syncJobRunService(deps),
    daemonService(deps),
    webhookService(deps),
    eventService(deps),
    inboundEventService(deps),
    taskService(deps),
    proxyService(deps),
    unifiedModelService(deps),
    unifiedMappingService(deps),
    unifiedService(deps),
    toolServerService(deps),
    callLogService(deps),
    overviewService(deps),
    auditService(deps),
  ]
  return services.map((service) => withSealedPages(deps.secrets.sealer, service))
}
