/**
 * The Model Context Protocol (revision 2026-07-28, and the handshake of 2025) as a view of tools: one stateless endpoint.
 *
 * Lives here: messages of the protocol, the pages of a list of tools. Never here: where tools come from and what a call does
 * (`tools/servers/`), or HTTP (`server/api/http/mcp.ts`).
 */

export { type McpTools, serveMcp } from './serve-mcp.ts'
