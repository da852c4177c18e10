import { ToolServerService } from '../../../../gen/patchbay/v1/tool_server_service_pb.ts'
import { listQuery, pageById } from '../../../foundation/database/index.ts'
import { assertScope } from '../../../platform/tenancy/index.ts'
import {
  createToolServer,
  deleteToolServer,
  getToolServer,
  listToolCalls,
  listToolServers,
  rotateToolServerToken,
  type ToolServerRecord,
  updateToolServer,
} from '../../../tools/servers/index.ts'
import { callerOf, environmentIdOf, type Principal } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { byId, listRpc } from './list-rpc.ts'
import { CALL_SCOPE, WRITE_SCOPE } from './proxy-calls.ts'
import {
  toolCallToProto,
  toolServerChangeFromProto,
  toolServerInputFromProto,
  toolServerToProto,
  toolsToProto,
} from './tool-server.convert.ts'
import { parseEnum, versionFrom } from './values.convert.ts'

const OUTCOMES = ['ok', 'error'] as const

/** Administers tool servers. */
export function toolServerService(deps: Pick<ServiceDeps, 'database' | 'secrets' | 'toolServers'>): ServiceDefinition {
  const { database, toolServers } = deps
  const { loader, publicUrl } = toolServers
  const { createToolServer: creation, rotateToolServerToken: rotation } = ToolServerService.method
  return defineService(ToolServerService, {
    createToolServer: (request, context) =>
      runIdempotent(deps, environmentIdOf(context), creation, request, async (tx) => {
        const input = toolServerInputFromProto(request)
        const { server, token } = await createToolServer(toolServers, tx, environmentIdOf(context), input)
        assertMayServe(callerOf(context), server)
        return toolServerToProto({ ...server, publicUrl: publicUrl(), token })
      }),
    getToolServer: async ({ id }, context) =>
      toolServerToProto({
        ...(await getToolServer(database.pool, environmentIdOf(context), id)),
        publicUrl: publicUrl(),
      }),
    listToolServers: listRpc(
      ToolServerService.method.listToolServers,
      (server: ToolServerRecord) => toolServerToProto({ ...server, publicUrl: publicUrl() }),
      byId({
        list: 'tool_server',
        owner: environmentIdOf,
        filter: ({ integratedAccountId, tenantId }) => ({
          integrated_account_id: integratedAccountId,
          tenant_id: tenantId,
        }),
        read: (range, context, { integrated_account_id: integratedAccountId, tenant_id: tenantId }) =>
          listToolServers(database.pool, environmentIdOf(context), { integratedAccountId, tenantId }, range),
      }),
    ),
    updateToolServer: async (request, context) => {
      const input = { ...toolServerChangeFromProto(request), id: request.id, version: versionFrom(request.etag) }
      const updated = await database.transaction(async (tx) => {
        const server = await updateToolServer(toolServers, tx, environmentIdOf(context), input)
        assertMayServe(callerOf(context), server)
        return server
      })
      return toolServerToProto({ ...updated, publicUrl: publicUrl() })
    },
    deleteToolServer: async ({ id, etag }, context) => {
      await deleteToolServer(database.pool, environmentIdOf(context), { id, version: versionFrom(etag) })
      return {}
    },
    rotateToolServerToken: (request, context) =>
      runIdempotent(deps, environmentIdOf(context), rotation, request, async (tx) => {
        const { server, token } = await rotateToolServerToken(tx, environmentIdOf(context), request.id)
        assertMayServe(callerOf(context), server)
        return toolServerToProto({ ...server, publicUrl: publicUrl(), token })
      }),
    listToolServerTools: async ({ id }, context) => {
      const server = await getToolServer(database.pool, environmentIdOf(context), id)
      return toolsToProto(server, await loader.load(database.pool, server))
    },
    listToolServerCalls: listRpc(
      ToolServerService.method.listToolServerCalls,
      toolCallToProto,
      async (request, context) => {
        const environmentId = environmentIdOf(context)
        const outcome = parseEnum(OUTCOMES, request.outcome)
        const { id: toolServerId } = await getToolServer(database.pool, environmentId, request.id)
        const query = listQuery('tool_server_call', environmentId, { tool_server_id: toolServerId, outcome })
        return await pageById(query, request, (range) =>
          listToolCalls(database.pool, { environmentId, toolServerId }, outcome, range),
        )
      },
    ),
  })
}

/** The token of a tool server calls third parties: a caller without the right to call neither gets nor changes one. @throws Failure SCOPE_REQUIRED */
function assertMayServe(caller: Principal, { isReadOnly }: ToolServerRecord): void {
  assertScope(caller, CALL_SCOPE)
  if (!isReadOnly) assertScope(caller, WRITE_SCOPE)
}
