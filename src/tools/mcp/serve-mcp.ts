import {
  type CallToolResult,
  createMcpHandler,
  type ListToolsResult,
  ProtocolError,
  ProtocolErrorCode,
  Server,
} from '@modelcontextprotocol/server'
import { Failure } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { ToolDescription, ToolResult } from '../servers/tool.ts'
import { decodeToolCursor, encodeToolCursor, type ToolListing } from './tool-cursor.ts'

/** What an endpoint offers its clients. */
export interface McpTools extends ToolListing {
  readonly name: string
  /** Of this service. */
  readonly version: string
  /** For the model. */
  readonly instructions: string
  /** The same order in every process. */
  readonly tools: readonly ToolDescription[]
  /** @throws Failure for an error of the protocol; anything else is a defect */
  call(name: string, args: JsonObject, signal: AbortSignal): Promise<ToolResult>
}

/** Tools per page of the list, and their characters as JSON. */
const PAGE_SIZE = 100
const PAGE_CHARACTERS_MAX = 1024 * 1024
/** How long a client may use the list without asking again: less than it takes to notice that a tool is missing. */
const LIST_TTL_MS = 60_000

/**
 * Answers one HTTP request of a client, of either era: whatever is needed is in the request, nothing is kept between two.
 *
 * @param body the parsed body; absent when it is not JSON, which is answered with a parse error
 * @param onDefect called with what a tool threw that was no Failure; the client gets an internal error without its text
 */
export async function serveMcp(
  request: Request,
  body: Json | undefined,
  source: McpTools,
  onDefect: (error: unknown) => void,
): Promise<Response> {
  // One request counts once against a rate limit: revisions since 2025-06-18 have no batches.
  if (Array.isArray(body)) return batchRejection()
  const handler = createMcpHandler(() => createServer(source, onDefect), {
    // Lists do not announce changes: a subscription to them is rejected at once.
    maxSubscriptions: 0,
    keepAliveMs: 0,
  })
  return await handler.fetch(request, body === undefined ? {} : { parsedBody: body })
}

function batchRejection(): Response {
  const error = {
    code: ProtocolErrorCode.InvalidRequest,
    message: 'batches are not served: send one message per request',
  }
  return Response.json({ jsonrpc: '2.0', id: null, error }, { status: 400 })
}

/** The low-level class of the SDK takes JSON Schemas as they are; the other one wants schemas of a library. */
function createServer(source: McpTools, onDefect: (error: unknown) => void): Server {
  const cache = { ttlMs: LIST_TTL_MS, cacheScope: 'private' } as const
  const server = new Server(
    { name: source.name, version: source.version },
    {
      capabilities: { tools: {} },
      instructions: source.instructions,
      cacheHints: { 'tools/list': cache, 'server/discover': cache },
    },
  )
  server.setRequestHandler('tools/list', ({ params }) => listTools(source, params?.cursor))
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const args = isJsonObject(params.arguments) ? params.arguments : {}
    try {
      return toCallResult(await source.call(params.name, args, mcpReq.signal))
    } catch (error) {
      if (error instanceof Failure) throw new ProtocolError(ProtocolErrorCode.InternalError, error.publicMessage)
      onDefect(error)
      throw new ProtocolError(ProtocolErrorCode.InternalError, 'internal error')
    }
  })
  return server
}

function listTools(listing: ToolListing, cursor: string | undefined): ListToolsResult {
  const { tools } = listing
  const start = cursor === undefined ? 0 : decodeToolCursor(listing, cursor)
  if (start === undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'the cursor is not one of this list: start without it')
  const end = endOfPage(tools, start)
  const page = tools.slice(start, end).map(toWireTool)
  return end < tools.length ? { tools: page, nextCursor: encodeToolCursor(listing, end) } : { tools: page }
}

/** After the tools that fit one page; at least one. */
function endOfPage(tools: readonly ToolDescription[], start: number): number {
  let room = PAGE_CHARACTERS_MAX
  for (const [at, tool] of tools.slice(start, start + PAGE_SIZE).entries()) {
    room -= charactersOf(tool)
    if (room < 0 && at > 0) return start + at
  }
  return start + PAGE_SIZE
}

const characters = new WeakMap<ToolDescription, number>()

function charactersOf(tool: ToolDescription): number {
  const count = characters.get(tool) ?? JSON.stringify(toWireTool(tool)).length
  characters.set(tool, count)
  return count
}

/** The types of the protocol are those of JSON, without `readonly`. */
function toWireTool(tool: ToolDescription): ListToolsResult['tools'][number] {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool
  const wire = { name, title, description, inputSchema, annotations, ...(outputSchema && { outputSchema }) }
  return wire as ListToolsResult['tools'][number]
}

function toCallResult({ structured, text, isError }: ToolResult): CallToolResult {
  const result = { content: [{ type: 'text', text }], structuredContent: structured, isError }
  return result as unknown as CallToolResult
}
