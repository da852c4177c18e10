/**
 * Tool servers: what agents may do with connected accounts, derived from definitions, unified models and actions.
 *
 * Lives here: the stored object with its token and limits, the derivation of tools, a call of a tool with its errors, the
 * search, the record of calls. Never here: a protocol by which tools are read and called (`tools/mcp/`).
 */

export type { ToolCall } from './call-tool.ts'
export { checkArguments, readArguments } from './check-arguments.ts'
export { checkFields, type FieldLevel, NO_FIELDS } from './check-fields.ts'
export { createToolLoader, type LoadedTools } from './load-tools.ts'
export { callSearchTool, type SearchableTool, searchTools } from './search-tools.ts'
export { deleteToolServersOfEnvironment, listToolCalls, TOOL_CALL_DAYS, type ToolCallRecord } from './sql/tool-call.ts'
export { listToolServers, type ToolServerRecord } from './sql/tool-server.ts'
export type { ServerTool, ToolDescription, ToolResult } from './tool.ts'
export { createToolEndpoint, type OpenToolServer, type ToolEndpoint } from './tool-endpoint.ts'
export { errorOfFailure, type ToolError, toolError } from './tool-error.ts'
export type { ToolServerFilter } from './tool-filter.ts'
export { errorResult, type PageNames, projectFields, successResult } from './tool-result.ts'
export { plainDescription, simplifySchema } from './tool-schema.ts'
export {
  createToolServer,
  deleteToolServer,
  getToolServer,
  rotateToolServerToken,
  type ToolServerAdminDeps,
  type ToolServerChange,
  type ToolServerInput,
  updateToolServer,
} from './tool-server.ts'
export { DIRECT_TOOLS_MAX, estimateTokens, sizeWarnings, visibleTools } from './visible-tools.ts'
