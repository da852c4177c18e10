import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  type ConfigFindingSchema,
  IntegrationGrantSchema,
  IntegrationSchema,
  IntegrationToolSchema,
} from '../../../../gen/patchbay/v1/integration_pb.ts'
import type {
  CreateIntegrationRequest,
  UpdateIntegrationRequest,
} from '../../../../gen/patchbay/v1/integration_service_pb.ts'
import type { Tool } from '../../../engine/definitions/index.ts'
import type { Violation } from '../../../foundation/base/index.ts'
import type {
  Integration,
  IntegrationChange,
  IntegrationGrantRecord,
  IntegrationInput,
  Sharing,
} from '../../../platform/integrations/index.ts'
import { shapeOf } from './shape.ts'
import { teamToProto } from './team.ts'
import { parseEnum, versionFrom } from './values.convert.ts'

const SHARING = ['allow', 'ask', 'deny'] as const satisfies readonly Sharing[]

/** The view of an integration in a list: `basic` leaves the config out. */
export type IntegrationView = 'basic' | 'full'

const VIEWS = ['basic', 'full'] as const satisfies readonly IntegrationView[]

/** An integration as its own resource and inside an installation. Without a config the key is absent. */
export const integrationToProto = shapeOf(IntegrationSchema).from<Integration>({
  team: ({ team }) => teamToProto(team),
})

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
export const integrationGrantToProto = shapeOf(IntegrationGrantSchema).from<IntegrationGrantRecord>()

/** One finding of a check, its path from the top of the config. */
export function findingToProto({ field, rule, description }: Violation): MessageInitShape<typeof ConfigFindingSchema> {
  return { path: field, rule, message: description }
}

/** A tool with the schemas of the definition. */
export const toolToProto = shapeOf(IntegrationToolSchema).from<Tool>()
