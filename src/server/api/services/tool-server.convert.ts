import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  ToolServerCallSchema,
  type ToolServerFilter as ToolServerFilterMessage,
  ToolServerSchema,
  type ToolServerToolSchema,
} from '../../../../gen/patchbay/v1/tool_server_pb.ts'
import type {
  CreateToolServerRequest,
  ListToolServerToolsResponseSchema,
  UpdateToolServerRequest,
} from '../../../../gen/patchbay/v1/tool_server_service_pb.ts'
import { invalidFields } from '../../../foundation/base/index.ts'
import {
  estimateTokens,
  type LoadedTools,
  type ServerTool,
  sizeWarnings,
  type ToolCallRecord,
  type ToolDescription,
  type ToolServerChange,
  type ToolServerFilter,
  type ToolServerInput,
  type ToolServerRecord,
  visibleTools,
} from '../../../tools/servers/index.ts'
import { structFrom } from '../messages/struct.ts'
import { shapeOf } from './shape.ts'
import { dateFrom, parseEnum } from './values.convert.ts'

const MODES = ['auto', 'direct', 'search'] as const
const KINDS = ['read', 'write', 'custom'] as const
const SOURCES = ['proxy', 'unified', 'actions'] as const

/**
 * A tool server without its token.
 *
 * @param publicUrl of this service, without a trailing slash
 * @param token only in the responses of creation and rotation, which alone show it
 */
export const toolServerToProto = shapeOf(ToolServerSchema).from<
  ToolServerRecord & { readonly publicUrl: string; readonly token?: string }
>({
  limits: ({ requestsPerMinute, writesPerDay, maxResultBytes }) => ({
    requestsPerMinute,
    writesPerDay,
    maxResultBytes,
  }),
  url: ({ publicUrl, id }) => `${publicUrl}/mcp/${id}`,
})

function filterFromProto(filter: ToolServerFilterMessage | undefined): ToolServerFilter | undefined {
  if (filter === undefined) return undefined
  const { methods, resources, tags, includeNames, excludeNames, sources } = filter
  return {
    methods: methods.map((kind) => parseEnum(KINDS, kind)),
    resources,
    tags,
    includeNames,
    excludeNames,
    sources: sources.map((source) => parseEnum(SOURCES, source)),
  }
}

/** The requested tool server. */
export function toolServerInputFromProto(request: CreateToolServerRequest): ToolServerInput {
  const { name, integratedAccountId, tenantId, integrations } = request
  return { ...changeFromProto(request), name, integratedAccountId, tenantId, integrations }
}

/**
 * The changes of a tool server. A list has no presence: an empty one changes nothing.
 *
 * @throws Failure INVALID_FIELD for a new expiry and none
 */
export function toolServerChangeFromProto(request: UpdateToolServerRequest): ToolServerChange {
  const { integrations, neverExpires } = request
  const change = changeFromProto(request)
  if (neverExpires && change.expiresAt !== undefined) {
    const description = 'cannot be given together with expires_at'
    throw invalidFields([{ field: 'never_expires', description, rule: 'tool_server.expiry' }])
  }
  return {
    ...change,
    integrations: integrations.length === 0 ? undefined : integrations,
    expiresAt: neverExpires ? null : change.expiresAt,
  }
}

function changeFromProto(request: CreateToolServerRequest | UpdateToolServerRequest) {
  const { name, instructions, isReadOnly, allowSearchWrites, isEnabled, limits } = request
  return {
    name,
    instructions:
      instructions === '' && request.$typeName.endsWith('CreateToolServerRequest') ? undefined : instructions,
    filter: filterFromProto(request.filter),
    isReadOnly,
    mode: parseEnum(MODES, request.mode),
    allowSearchWrites,
    expiresAt: dateFrom(request.expiresAt),
    limits,
    isEnabled,
  }
}

/** The tools of a server as its clients get them. */
export function toolsToProto(
  server: ToolServerRecord,
  loaded: LoadedTools,
): MessageInitShape<typeof ListToolServerToolsResponseSchema> {
  const visible = visibleTools(server, loaded)
  const byName = new Map(loaded.tools.map((tool) => [tool.name, tool]))
  const tools = visible.tools.map((tool) =>
    toolToProto(tool, visible.mode === 'direct' ? byName.get(tool.name) : undefined),
  )
  const warnings = [...loaded.warnings, ...sizeWarnings(visible)]
  return {
    tools,
    searchableNames: visible.searchable.map(({ name }) => name),
    mode: visible.mode,
    estimatedTokens: visible.tools.reduce((sum, tool) => sum + estimateTokens(tool), 0),
    warnings: warnings.map((warning) => ({ ...warning })),
  }
}

/** @param derived absent for the tools of the search mode */
function toolToProto(
  tool: ToolDescription,
  derived: ServerTool | undefined,
): MessageInitShape<typeof ToolServerToolSchema> {
  const { annotations, outputSchema } = tool
  const { model, resource = '', method = '' } = derived?.target ?? {}
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description,
    inputSchema: structFrom(tool.inputSchema),
    outputSchema: outputSchema && structFrom(outputSchema),
    isReadOnly: annotations.readOnlyHint,
    isDestructive: annotations.destructiveHint,
    isIdempotent: annotations.idempotentHint,
    source: derived?.source ?? 'search',
    resource: model === undefined ? resource : `${model}/${resource}`,
    method,
    estimatedTokens: estimateTokens(tool),
  }
}

/** A call of a tool. */
export const toolCallToProto = shapeOf(ToolServerCallSchema).from<ToolCallRecord>({
  outcome: ({ errorType }) => (errorType === '' ? 'ok' : 'error'),
})
