/**
 * What ships with the product, as data: integration definitions, one file per API; unified models with the mappings to them; logos.
 *
 * Nothing here has behaviour, and no code elsewhere knows an API by name.
 */

export { findShippedDefinition, labelOf, SHIPPED_NAMES } from './definitions.ts'
export { findShippedLogo, hasShippedLogo } from './logos.ts'
export { findShippedMapping, findShippedModel, listMappedIntegrations, SHIPPED_MODEL_NAMES } from './unified.ts'
