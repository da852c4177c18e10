/**
 * Tool servers: what agents may do with connected accounts, derived from definitions, unified models and actions.
 *
 * Lives here: the stored object with its token and limits, the derivation of tools, a call of a tool with its errors, the
 * search, the record of calls. Never here: a protocol by which tools are read and called (`mcp/`).
 */

export type { ServerTool, ToolAnnotations, ToolDescription, ToolResult } from './tool.ts'
