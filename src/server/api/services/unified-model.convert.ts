import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  UnifiedMethodDescriptionSchema,
  type UnifiedModelDescriptionSchema,
  UnifiedModelSchema,
  type UnifiedResourceDescriptionSchema,
} from '../../../../gen/patchbay/v1/unified_model_pb.ts'
import type { UpdateUnifiedModelRequest } from '../../../../gen/patchbay/v1/unified_model_service_pb.ts'
import type { CustomFieldDescription } from '../../../engine/unified/index.ts'
import type {
  MethodDescription,
  ModelChange,
  ModelDescription,
  ModelView,
  ResourceDescription,
} from '../../../platform/unified-config/index.ts'
import { structFrom } from '../messages/struct.ts'
import { shapeOf } from './shape.ts'
import { timestampFrom, toEtag, versionFrom } from './values.convert.ts'

/** A model; what is not stored has no times and an empty etag. */
export const unifiedModelToProto = shapeOf(UnifiedModelSchema).from<ModelView>({
  config: ({ stored }) => structFrom(stored?.config),
  createdAt: ({ stored }) => timestampFrom(stored?.createdAt),
  updatedAt: ({ stored }) => timestampFrom(stored?.updatedAt),
  etag: ({ stored }) => stored && toEtag(stored.version),
})

/** The change of a model; the config is a merge patch unless it replaces. */
export function modelChangeFromProto(request: UpdateUnifiedModelRequest): ModelChange {
  const { name, config, replaceConfig, etag } = request
  return { name, config, isReplacing: replaceConfig, version: versionFrom(etag) }
}

/** Custom fields of an account by unified resource, or why they could not be read. */
export type CustomFieldsByResource = ReadonlyMap<string, readonly CustomFieldDescription[] | string>

/** What a model offers for an account. */
export function modelDescriptionToProto(
  description: ModelDescription,
  customFields: CustomFieldsByResource,
): MessageInitShape<typeof UnifiedModelDescriptionSchema> {
  const { model, integrationName, resources } = description
  return {
    model: model.name,
    label: model.label,
    description: model.description,
    integrationName,
    resources: resources.map((each) => resourceToProto(each, customFields.get(each.resource.name) ?? [])),
  }
}

function resourceToProto(
  { resource, methods, unmappedMethods, mappedFields, unmappedFields }: ResourceDescription,
  customFields: readonly CustomFieldDescription[] | string,
): MessageInitShape<typeof UnifiedResourceDescriptionSchema> {
  return {
    name: resource.name,
    description: resource.description,
    schema: structFrom(resource.schema),
    methods: methods.map(methodToProto),
    unmappedMethods: [...unmappedMethods],
    mappedFields: [...mappedFields],
    unmappedFields: [...unmappedFields],
    ...(typeof customFields === 'string'
      ? { customFieldsError: customFields }
      : { customFields: customFields.map((field) => ({ ...field })) }),
  }
}

const methodToProto = shapeOf(UnifiedMethodDescriptionSchema).from<MethodDescription>({
  mapping: ({ merged }) => structFrom(merged.config),
  layers: ({ merged }) => Object.fromEntries(merged.layers),
  problems: ({ problems }) =>
    problems.map(({ field, rule, description }) => ({ path: field, rule, severity: 'error', message: description })),
})
