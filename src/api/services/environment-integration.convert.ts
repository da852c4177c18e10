import type { MessageInitShape } from '@bufbuild/protobuf'
import type { EnvironmentIntegrationSchema } from '../../../gen/patchbay/v1/environment_integration_pb.ts'
import type {
  CreateEnvironmentIntegrationRequest,
  ListEnvironmentIntegrationsRequest,
  ResolveEnvironmentIntegrationResponseSchema,
  UpdateEnvironmentIntegrationRequest,
} from '../../../gen/patchbay/v1/environment_integration_service_pb.ts'
import type { ResolvedConfig } from '../../definitions/index.ts'
import type {
  EnvironmentIntegration,
  EnvironmentIntegrationChange,
  EnvironmentIntegrationFilter,
  EnvironmentIntegrationInput,
} from '../../integrations/index.ts'
import { structFrom } from '../messages/struct.ts'
import { integrationToProto } from './integration.convert.ts'
import { timestampFrom, toEtag, versionFrom } from './values.convert.ts'

/** An installation with its integration, whose team and installed environments are part of it. */
export function environmentIntegrationToProto(
  installation: EnvironmentIntegration,
): MessageInitShape<typeof EnvironmentIntegrationSchema> {
  return {
    id: installation.id,
    integrationId: installation.integrationId,
    environmentId: installation.environmentId,
    showInCatalog: installation.showInCatalog,
    isEnabled: installation.isEnabled,
    createdAt: timestampFrom(installation.createdAt),
    updatedAt: timestampFrom(installation.updatedAt),
    integration: integrationToProto(installation.integration),
    override: structFrom(installation.override),
    etag: toEtag(installation.version),
    clientSecretExpiresAt:
      installation.clientSecretExpiresAt === null ? undefined : timestampFrom(installation.clientSecretExpiresAt),
  }
}

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
  const { id, showInCatalog, isEnabled, override, replaceOverride } = request
  return { id, showInCatalog, isEnabled, override, replaceOverride, version: versionFrom(request.etag) }
}

/** The filter of a list of installations; absent fields do not restrict. */
export function environmentIntegrationFilterFromProto(
  request: ListEnvironmentIntegrationsRequest,
): EnvironmentIntegrationFilter {
  const { integrationId, isEnabled, showInCatalog } = request
  return { integrationId, isEnabled, showInCatalog }
}

/** The effective config, and by JSON path the layer of each of its leaves. */
export function resolvedConfigToProto({
  config,
  layers,
}: ResolvedConfig): MessageInitShape<typeof ResolveEnvironmentIntegrationResponseSchema> {
  return { config: structFrom(config), layers }
}
