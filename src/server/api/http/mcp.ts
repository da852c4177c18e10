import type { Sealer } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import type { McpTools } from '../../../tools/mcp/index.ts'
import type { OpenToolServer, ToolEndpoint, ToolResult, ToolServerRecord } from '../../../tools/servers/index.ts'
import { accountKey } from '../caller.ts'
import { authenticateOther, bearerToken } from '../pipeline/authenticate.ts'
import { assertMcpOrigin, exchangeMcp, type McpOrigins } from './mcp-exchange.ts'
import type { HttpExchange, HttpRoute } from './routes.ts'

const MCP_PREFIX = '/mcp/'
/** A call of a third party ends after 30 seconds, and an action may make several. */
const DEADLINE_MS = 120_000
const UUID_LENGTH = 36

/** What the route of tool servers needs. */
export interface McpRouteDeps extends McpOrigins {
  readonly endpoint: ToolEndpoint
  /** Of this service. */
  readonly version: string
  readonly sealer: Sealer
}

/**
 * `POST /mcp/{tool_server_id}`: the Model Context Protocol for the clients of a tool server. Its own bearer token is the only
 * one that is accepted; a request without it counts against the limit of its client address.
 */
export function mcpRoute(deps: McpRouteDeps): HttpRoute {
  const { endpoint, version, sealer } = deps
  return {
    verbs: ['POST'],
    path: MCP_PREFIX,
    isPrefix: true,
    access: 'public',
    readsBody: 'after_authentication',
    deadlineDefaultMs: DEADLINE_MS,
    async handle(exchange) {
      const { context, path } = exchange
      const id = path.slice(MCP_PREFIX.length).toLowerCase()
      context.logFields = { tool_server_id: id.slice(0, UUID_LENGTH) }
      assertMcpOrigin(exchange, deps)
      const token = bearerToken(context)
      const presented = { text: token && `${id} ${token}`, isKnown: endpoint.isKnown(id, token) }
      const server = await authenticateOther(exchange, presented, () => endpoint.authenticate(id, token))
      const counted = endpoint.takeRequest(server)
      const open = async (body: Json | undefined): Promise<McpTools> => {
        const [opened] = await Promise.all([endpoint.open(server, isToolCall(body)), counted])
        return {
          ...opened,
          version,
          sealer,
          holder: { tool_server: server.id },
          call: callLogged.bind(undefined, exchange, server, opened),
        }
      }
      // A request above the limit is answered before its body has arrived.
      await Promise.all([counted, exchangeMcp(exchange, open)])
    },
  }
}

function isToolCall(body: Json | undefined): boolean {
  return isJsonObject(body) && body.method === 'tools/call'
}

async function callLogged(
  { context, server: { logger } }: HttpExchange,
  server: ToolServerRecord,
  opened: OpenToolServer,
  name: string,
  args: JsonObject,
  signal: AbortSignal,
): Promise<ToolResult> {
  const startedMs = performance.now()
  const { result, tool, errorType, accountId } = await opened.call({
    name,
    arguments: args,
    signal,
    onAccount: (account) => context.values.set(accountKey, account),
  })
  const fields = {
    tool_server_id: server.id,
    // A name that is no tool is text of the client.
    tool: tool ?? 'unknown',
    tool_outcome: errorType === '' ? 'ok' : errorType,
    ...(accountId === undefined ? {} : { integrated_account_id: accountId }),
  }
  context.logFields = fields
  const durationMs = Math.round(performance.now() - startedMs)
  logger.info(
    { request_id: context.requestId, ...fields, token_hint: server.tokenHint, duration_ms: durationMs },
    'a tool was called',
  )
  return result
}
