import { EnvironmentIntegrationSchema } from '../../../../gen/patchbay/v1/environment_integration_pb.ts'
import {
  type CreateEnvironmentIntegrationRequest,
  type ListEnvironmentIntegrationsRequest,
  ResolveEnvironmentIntegrationResponseSchema,
  type UpdateEnvironmentIntegrationRequest,
} from '../../../../gen/patchbay/v1/environment_integration_service_pb.ts'
import type { ResolvedConfig } from '../../../engine/definitions/index.ts'
import type {
  EnvironmentIntegration,
  EnvironmentIntegrationChange,
  EnvironmentIntegrationFilter,
  EnvironmentIntegrationInput,
} from '../../../platform/integrations/index.ts'
import { integrationToProto } from './integration.convert.ts'
import { shapeOf } from './shape.ts'
import { versionFrom } from './values.convert.ts'

/** An installation with its integration, whose team and installed environments are part of it. */
export const environmentIntegrationToProto = shapeOf(EnvironmentIntegrationSchema).from<EnvironmentIntegration>({
  integration: ({ integration }) => integrationToProto(integration),
})

/** The installation to create. An absent override overrides nothing. */
export function environmentIntegrationInputFromProto(
  request: CreateEnvironmentIntegrationRequest,
): EnvironmentIntegrationInput {
  const { integrationId, showInCatalog, isEnabled, override } = request
  return { integrationId, showInCatalog, isEnabled, override }
}

/** The changes of an installation; absent fields keep their values. */
export function environmentIntegrationChangeFromProto(
  request: UpdateEnvironmentIntegrationRequest,
): EnvironmentIntegrationChange {
  const { id, showInCatalog, isEnabled, override, replaceOverride, reauthorizeAccounts } = request
  const version = versionFrom(request.etag)
  return { id, showInCatalog, isEnabled, override, replaceOverride, reauthorizeAccounts, version }
}

/** The filter of a list of installations; absent fields do not restrict. */
export function environmentIntegrationFilterFromProto(
  request: ListEnvironmentIntegrationsRequest,
): EnvironmentIntegrationFilter {
  const { integrationId, isEnabled, showInCatalog } = request
  return { integrationId, isEnabled, showInCatalog }
}

/** The effective config, and by JSON path the layer of each of its leaves. */
export const resolvedConfigToProto = shapeOf(ResolveEnvironmentIntegrationResponseSchema).from<
  ResolvedConfig & { readonly redirectUri: string }
>()
