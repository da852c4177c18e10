/**
 * Unified resources: records of many APIs in one shape, and calls in that shape.
 *
 * A model says the shape, a mapping says how a provider's records become records of the model and back. Here: check, merge and
 * compilation of both, mapping of records, calls, pages and dry runs. Never here: a database or a socket; every request is a
 * call of the proxy.
 */

export { prepareRequest } from './build-call.ts'
export { callUnified } from './call-unified.ts'
export type { MappingFinding } from './check-fields.ts'
export { distinctFindings, findMappingProblems } from './check-findings.ts'
export { checkFixtures } from './check-fixture.ts'
export { checkMappingLayer } from './check-mapping.ts'
export { compileMapping } from './compile-mapping.ts'
export { type CustomFieldDescription, listCustomFields } from './custom-field-list.ts'
export { findFilterProblems, missingFilters, REQUIRED_BY_INTEGRATION } from './filters.ts'
export { type MappingFixture, parseFixture, parseTriedCall, type TriedExchange } from './fixture.ts'
export type { FieldTrace, MergedMapping } from './mapping.ts'
export type { MappingPlan } from './mapping-plan.ts'
export { FILTER_OPERATORS, type FilterOperator } from './mapping-schema.ts'
export { type MappingPart, mergeMappings } from './merge-mappings.ts'
export { parseModel, type UnifiedModel, type UnifiedResource } from './model.ts'
export { checkModel } from './model-schema.ts'
export { previewUnified, type UnifiedPreview } from './preview-unified.ts'
export { listReferences, type ReferencedResource, type References } from './references.ts'
export type {
  UnifiedDependencies,
  UnifiedOutcome,
  UnifiedPreviewRequest,
  UnifiedRequest,
  UnifiedSuccess,
  UnifiedTarget,
} from './request.ts'
export {
  checkUnifiedQuery,
  filtersSince,
  readUnifiedQuery,
  UNIFIED_OPTIONS,
  type UnifiedQuery,
} from './request-query.ts'
export { fixtureRequest, type TriedMapping, tryCall, tryFixture } from './try-mapping.ts'
export { unifiedPages } from './unified-pages.ts'
