import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  ConfigFindingSchema,
  EmbeddedIntegrationSchema,
  IntegrationGrantSchema,
  IntegrationSchema,
  IntegrationToolSchema,
} from '../../../gen/patchbay/v1/integration_pb.ts'
import type {
  CreateIntegrationRequest,
  UpdateIntegrationRequest,
} from '../../../gen/patchbay/v1/integration_service_pb.ts'
import type { Violation } from '../../base/index.ts'
import type { Tool } from '../../definitions/index.ts'
import type {
  Integration,
  IntegrationChange,
  IntegrationGrantRecord,
  IntegrationInput,
  IntegrationRecord,
  Sharing,
} from '../../integrations/index.ts'
import { structFrom } from '../messages/struct.ts'
import { teamToProto } from './team.ts'
import { parseEnum, timestampFrom, toEtag, versionFrom } from './values.convert.ts'

const SHARING = ['allow', 'ask', 'deny'] as const satisfies readonly Sharing[]

/** The view of an integration in a list: `basic` leaves the config out. */
export type IntegrationView = 'basic' | 'full'

const VIEWS = ['basic', 'full'] as const satisfies readonly IntegrationView[]

/** An integration as its own resource and inside an installation. Without a config the key is absent. */
export function integrationToProto(integration: Integration): MessageInitShape<typeof IntegrationSchema> {
  return {
    ...sharedFields(integration),
    installedEnvironment: [...integration.installedEnvironment],
    team: teamToProto(integration.team),
  }
}

/** An integration inside an account: it has neither team nor installed environments. */
export function embeddedIntegrationToProto(
  integration: IntegrationRecord,
): MessageInitShape<typeof EmbeddedIntegrationSchema> {
  return sharedFields(integration)
}

function sharedFields(integration: IntegrationRecord) {
  return {
    id: integration.id,
    name: integration.name,
    category: integration.category,
    isBeta: integration.isBeta,
    config: integration.config && structFrom(integration.config),
    teamId: integration.teamId,
    sharing: integration.sharing,
    createdAt: timestampFrom(integration.createdAt),
    updatedAt: timestampFrom(integration.updatedAt),
    etag: toEtag(integration.version),
  }
}

/** The integration to create. The contract guarantees that there is a config. */
export function integrationInputFromProto(request: CreateIntegrationRequest): IntegrationInput {
  const { name, category, isBeta, config = {} } = request
  return { name, category, isBeta, sharing: parseEnum(SHARING, request.sharing), config }
}

/** The changes of an integration; the config is a merge patch. */
export function integrationChangeFromProto(request: UpdateIntegrationRequest): IntegrationChange {
  const { id, name, category, isBeta, config } = request
  const sharing = parseEnum(SHARING, request.sharing)
  return { id, name, category, isBeta, sharing, config, version: versionFrom(request.etag) }
}

/** The requested view of a list; `basic` by default. */
export function viewFromProto(view: string | undefined): IntegrationView {
  return parseEnum(VIEWS, view ?? 'basic')
}

/** A grant, which its pair of integration and team identifies. */
export function integrationGrantToProto(
  grant: IntegrationGrantRecord,
): MessageInitShape<typeof IntegrationGrantSchema> {
  return { integrationId: grant.integrationId, teamId: grant.teamId, createdAt: timestampFrom(grant.createdAt) }
}

/** One finding of a check, its path from the top of the config. */
export function findingToProto({ field, rule, description }: Violation): MessageInitShape<typeof ConfigFindingSchema> {
  return { path: field, rule, message: description }
}

/** A tool with the schemas of the definition. */
export function toolToProto(tool: Tool): MessageInitShape<typeof IntegrationToolSchema> {
  const { name, resource, method, description } = tool
  return {
    name,
    resource,
    method,
    description,
    tags: [...tool.tags],
    querySchema: structFrom(tool.querySchema),
    bodySchema: structFrom(tool.bodySchema),
    required: [...tool.required],
  }
}
