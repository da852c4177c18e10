import type { DerivedTools, ToolWarning } from './derive-tools.ts'
import { searchTools } from './search-tools.ts'
import type { ToolServerRecord } from './sql/tool-server.ts'
import type { ServerTool, ToolDescription } from './tool.ts'

/** Several clients show a model no more tools than this. */
export const DIRECT_TOOLS_MAX = 40
const CHARACTERS_PER_TOKEN = 4
const TOKENS_MAX = 20_000

/** The tools of a server as its clients get them. */
export interface VisibleTools {
  readonly mode: 'direct' | 'search'
  readonly tools: readonly ToolDescription[]
  /** What the search tools find and call; empty in the direct mode. */
  readonly searchable: readonly ServerTool[]
  /** Whether these may change something. */
  readonly canSearchWrite: boolean
}

/** Decides the mode, and with it the tools that clients read. */
export function visibleTools(
  server: Pick<ToolServerRecord, 'mode' | 'allowSearchWrites'>,
  { tools }: Pick<DerivedTools, 'tools'>,
): VisibleTools {
  const writes = tools.some(({ target }) => target.isWrite)
  const isSearch =
    server.mode === 'search' ||
    (server.mode === 'auto' && tools.length > DIRECT_TOOLS_MAX && (!writes || server.allowSearchWrites))
  if (!isSearch) return { mode: 'direct', tools, searchable: [], canSearchWrite: false }
  const searchable = server.allowSearchWrites ? tools : tools.filter(({ target }) => !target.isWrite)
  const canSearchWrite = writes && server.allowSearchWrites
  return { mode: 'search', tools: searchTools(searchable.length, canSearchWrite), searchable, canSearchWrite }
}

/** About how many tokens of a model a tool takes. */
export function estimateTokens({
  name,
  title,
  description,
  inputSchema,
  outputSchema,
  annotations,
}: ToolDescription): number {
  const text = JSON.stringify({ name, title, description, inputSchema, outputSchema, annotations })
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN)
}

/** What the owner should know of the tools together. */
export function sizeWarnings({ tools, mode }: VisibleTools): readonly ToolWarning[] {
  const tokens = tools.reduce((sum, tool) => sum + estimateTokens(tool), 0)
  if (mode === 'direct' && tools.length > DIRECT_TOOLS_MAX) {
    const message = `${tools.length} tools of about ${tokens} tokens: several clients show a model ${DIRECT_TOOLS_MAX} at most; narrow the filter or set mode to search`
    return [{ code: 'too_many_tools', tool: '', message }]
  }
  if (tokens <= TOKENS_MAX) return []
  return [{ code: 'too_many_tools', tool: '', message: `the tools take about ${tokens} tokens of every conversation` }]
}
