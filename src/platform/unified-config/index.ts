/**
 * Unified models and mappings as they are stored, and what they come to for an account.
 *
 * Here: the rows of customers over the files that ship, their layers, the effective mapping of an account, its description.
 * Never here: what a mapping means (`engine/unified/`), or calling an API (`engine/proxy/`).
 */

export { checkLayer, draftMethod, findDefinition, type LayerToCheck } from './check-layer.ts'
export type { MethodDescription, ModelDescription, ResourceDescription } from './describe.ts'
export {
  createUnifiedMappings,
  type EffectiveMapping,
  type UnifiedMappings,
  type UnifiedMethodRef,
} from './effective-mapping.ts'
export { listMappedModels } from './mapped-models.ts'
export {
  createMapping,
  deleteMapping,
  getMapping,
  type MappingChange,
  type MappingWriter,
  updateMapping,
} from './mapping.ts'
export { checkMappingDocument, locate, type MappingDocument, readMappingDocument } from './mapping-document.ts'
export {
  checkModelConfig,
  createModel,
  deleteModel,
  getModel,
  listModels,
  type ModelChange,
  type ModelView,
  updateModel,
} from './model.ts'
export { type ModelToPush, type PushResult, pushMappings } from './push.ts'
export type { MappedAccount } from './sql/effective.ts'
export {
  deleteMappingsOfEnvironment,
  type MappingFilter,
  type MappingScopeName,
  type StoredMapping,
  selectMappings,
} from './sql/mapping.ts'
