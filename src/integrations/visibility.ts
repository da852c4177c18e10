import type { IntegrationRecord } from '../storage/index.ts'

/** Whether a team sees an integration at all: its own always, another's unless its sharing is `deny`. */
export function isVisible(integration: Pick<IntegrationRecord, 'teamId' | 'sharing'>, teamId: string): boolean {
  return integration.teamId === teamId || integration.sharing !== 'deny'
}
