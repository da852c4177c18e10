import type { Tx } from '../storage/index.ts'

/**
 * Empties what is about to be deleted by force. The things inside belong to rooms above this one, which hand their
 * removal down; each removes rows and the secrets that go with them.
 */
export interface CascadeDelete {
  /** Removes everything in the environment but its tokens. */
  deleteByEnvironment(tx: Tx, environmentId: string): Promise<void>
  /** Removes the team's integrations. @throws Failure RESOURCE_IN_USE when another team has installed one */
  deleteIntegrationsOfTeam(tx: Tx, teamId: string): Promise<void>
  /** Makes every remaining secret of the owner, an environment or a team, unreadable for good. */
  destroyKeys(tx: Tx, ownerId: string): Promise<void>
}
