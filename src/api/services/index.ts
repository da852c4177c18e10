import type { ServiceDefinition } from '../service.ts'
import { apiTokenService } from './api-token.ts'
import { environmentService } from './environment.ts'
import { type TeamServiceDeps, teamService } from './team.ts'
import { type WebhookServiceDeps, webhookService } from './webhook.ts'

/** Everything the services need between them. */
export interface ServiceDeps extends TeamServiceDeps, WebhookServiceDeps {}

/** The services of the contract, in the order of its table. */
export function createServices(deps: ServiceDeps): readonly ServiceDefinition[] {
  return [teamService(deps), environmentService(deps), apiTokenService(deps), webhookService(deps)]
}
