import { LRUCache } from 'lru-cache'
import { findIntegration, type IntegrationRecord, type Tx } from '../storage/index.ts'

/** Integrations kept in memory; a large config takes a few hundred kilobytes. */
const INTEGRATIONS_CACHED_MAX = 500

/** Integrations at a version, for answers that embed them. */
export interface IntegrationCache {
  /**
   * The integration with its masked config, at the version wanted or a later one; `undefined` when it is gone. The same
   * object every time, so that what is derived from it can be remembered with it.
   */
  find(tx: Tx, id: string, version: number): Promise<IntegrationRecord | undefined>
}

/**
 * A version of an integration never changes, so it is read once. A transaction handed in must not have changed the
 * integration itself: what it reads is remembered for others.
 */
export function createIntegrationCache(): IntegrationCache {
  const integrations = new LRUCache<string, IntegrationRecord>({ max: INTEGRATIONS_CACHED_MAX })
  return {
    async find(tx, id, version) {
      const key = `${id} ${version}`
      const known = integrations.get(key)
      if (known !== undefined) return known
      const integration = await findIntegration(tx, id)
      if (integration !== undefined) integrations.set(key, integration)
      return integration
    },
  }
}
