/**
 * Unified models and mappings as they are stored, and what they come to for an account.
 *
 * Here: the rows of customers over the files that ship, their layers, the effective mapping of an account, its description.
 * Never here: what a mapping means (`unified/`), or calling an API (`proxy/`).
 */

export {
  createUnifiedMappings,
  type EffectiveMapping,
  type UnifiedMappings,
  type UnifiedMethodRef,
} from './effective-mapping.ts'
export { listMappedModels } from './mapped-models.ts'
export type { MappedAccount } from './sql/effective.ts'
