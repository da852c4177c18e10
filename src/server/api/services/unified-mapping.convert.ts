import { UnifiedMappingFindingSchema, UnifiedMappingSchema } from '../../../../gen/patchbay/v1/unified_mapping_pb.ts'
import {
  type CheckUnifiedMappingRequest,
  type CreateUnifiedMappingRequest,
  type ListUnifiedMappingsRequest,
  type PushUnifiedMappingsRequest,
  PushUnifiedMappingsResponseSchema,
  type UpdateUnifiedMappingRequest,
} from '../../../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import type { MappingFinding } from '../../../engine/unified/index.ts'
import type {
  MappingChange,
  MappingFilter,
  MappingScopeName,
  ModelToPush,
  PushResult,
  StoredMapping,
} from '../../../platform/unified-config/index.ts'
import type { Finding } from '../operation.ts'
import { shapeOf } from './shape.ts'
import { parseEnum, versionFrom } from './values.convert.ts'

const SCOPES = ['base', 'environment', 'account'] as const satisfies readonly MappingScopeName[]

/** What requests say of a mapping and of where it holds. */
export type PlacedRequest = Pick<
  CreateUnifiedMappingRequest | CheckUnifiedMappingRequest,
  'scope' | 'integratedAccountId' | 'integrationName' | 'model' | 'resource' | 'method' | 'config'
>

/** The scope of a request: that of its account, else that of the environment, unless it names one. */
export function mappingScopeOf({ scope, integratedAccountId }: Pick<PlacedRequest, 'scope' | 'integratedAccountId'>) {
  return parseEnum(SCOPES, scope ?? (integratedAccountId === undefined ? 'environment' : 'account'))
}

/** Findings about scope, account and integration, which belong together. */
export function mappingPlaceFindings(request: PlacedRequest): readonly Finding[] {
  const { scope, integratedAccountId, integrationName } = request
  if (scope === 'account' && integratedAccountId === undefined)
    return [placeFinding('integrated_account_id', 'is required in the scope account')]
  if (scope !== undefined && scope !== 'account' && integratedAccountId !== undefined)
    return [placeFinding('integrated_account_id', 'is for the scope account alone')]
  if (integratedAccountId === undefined && integrationName === undefined)
    return [placeFinding('integration_name', 'is required without an account')]
  return []
}

function placeFinding(field: string, description: string): Finding {
  return { field, description, rule: 'unified_mapping.scope' }
}

/** A mapping as it is stored. @param warnings what its check found, of one that was just written */
export const unifiedMappingToProto = shapeOf(UnifiedMappingSchema).from<
  StoredMapping & { readonly warnings?: readonly MappingFinding[] }
>({
  scope: ({ environmentId, integratedAccountId }) =>
    environmentId === null ? 'base' : integratedAccountId === null ? 'environment' : 'account',
})

/** The change of a mapping; the config is a merge patch unless it replaces. */
export function mappingChangeFromProto(request: UpdateUnifiedMappingRequest): MappingChange {
  const { id, config, replaceConfig, etag } = request
  return { id, config, isReplacing: replaceConfig, version: versionFrom(etag) }
}

/** Which mappings a list asks for. */
export function mappingFilterFromProto(request: ListUnifiedMappingsRequest): MappingFilter {
  const { integratedAccountId, model, resource, integrationName, method } = request
  const scope = parseEnum(SCOPES, request.scope)
  return { scope, integratedAccountId, model, resource, integrationName, method }
}

/** Something that a check found. */
export const mappingFindingToProto = shapeOf(UnifiedMappingFindingSchema).from<MappingFinding>()

/** The mappings of a push, each with the scope of all. */
export function placedMappingsOf({
  scope,
  integratedAccountId,
  mappings,
}: PushUnifiedMappingsRequest): readonly PlacedRequest[] {
  return mappings.map((mapping) => ({ ...mapping, scope, integratedAccountId }))
}

/** The models of a push. */
export function modelsToPush({ models }: PushUnifiedMappingsRequest): readonly ModelToPush[] {
  return models.map(({ name, config = {} }) => ({ name, config }))
}

/** Findings about the scope of a push, and about what it has twice. */
export function pushFindings(request: PushUnifiedMappingsRequest): readonly Finding[] {
  const { models } = request
  const placed = placedMappingsOf(request)
  const scoped = placed.flatMap((each, at) =>
    mappingPlaceFindings(each).map((finding) =>
      finding.field === 'integration_name' ? { ...finding, field: `mappings[${at}].integration_name` } : finding,
    ),
  )
  const [ofModels, ofMappings] = [
    models.map(({ name }) => name),
    placed.map(({ model, resource, integrationName, method = '*' }) =>
      [model, resource, integrationName, method].join(' '),
    ),
  ]
  const distinct = [...new Map(scoped.map((finding) => [finding.field, finding])).values()]
  return [...distinct, ...repetitions('models', ofModels), ...repetitions('mappings', ofMappings)]
}

function repetitions(list: string, keys: readonly string[]): readonly Finding[] {
  return keys.flatMap((key, at) =>
    keys.indexOf(key) === at
      ? []
      : [{ field: `${list}[${at}]`, description: 'is there twice', rule: 'unified_mapping.repeated' }],
  )
}

/** What became of a push. */
export const pushResultToProto = shapeOf(PushUnifiedMappingsResponseSchema).from<PushResult>()
