import { suggest } from '../../foundation/base/index.ts'
import { isJsonObject, type JsonObject } from '../../foundation/json/index.ts'
import type { ToolCall } from './call-tool.ts'
import { checkArguments, readArguments } from './check-arguments.ts'
import type { ToolDescription, ToolResult } from './tool.ts'
import { type ToolError, toolError } from './tool-error.ts'
import { errorResult, successResult } from './tool-result.ts'

/** A tool that a search finds. */
export interface SearchableTool extends ToolDescription {
  readonly tags: readonly string[]
}

/** What the tools of the search mode work on. */
export interface SearchSpace {
  readonly searchable: readonly SearchableTool[]
  readonly canWrite: boolean
  /** Longest result as JSON. */
  readonly resultBytesMax: number
  /** The error for a name that is none of the searchable tools. */
  readonly unknownTool: (name: string) => ToolError
}

/** The names of the tools of the search mode. */
const SEARCH_TOOL_NAMES = { search: 'search_tools', describe: 'describe_tool', call: 'call_tool' } as const

const QUERY_LENGTH_MAX = 500
/** Each word costs time for each tool. */
const WORDS_MAX = 32
const LIMIT_DEFAULT = 10
const LIMIT_MAX = 50
const NOTHING_FOUND = 'No tool has one of these words: search with others, or with an empty query for the first tools.'
/** A word in the name says more about a tool than one in its description. */
const NAME_WEIGHT = 3
const TAG_WEIGHT = 2
/** Saturation and length normalisation of BM25, with their usual values. */
const K1 = 1.2
const B = 0.75

/** The three tools of the search mode. @param canWrite whether `call_tool` may change something */
export function searchTools(count: number, canWrite: boolean): readonly ToolDescription[] {
  return [
    describeSearchTool(
      SEARCH_TOOL_NAMES.search,
      'Search tools',
      `Finds tools by words of what they do; there are ${count}. Then read one with ${SEARCH_TOOL_NAMES.describe} and call it with ${SEARCH_TOOL_NAMES.call}.`,
      {
        query: { type: 'string', maxLength: QUERY_LENGTH_MAX, description: 'Words such as list contacts.' },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: LIMIT_MAX,
          default: LIMIT_DEFAULT,
          description: 'Tools to return.',
        },
      },
      ['query'],
      false,
    ),
    describeSearchTool(
      SEARCH_TOOL_NAMES.describe,
      'Describe a tool',
      'Returns the description and the JSON Schema of the arguments of one tool.',
      { name: { type: 'string', description: 'The name of the tool.' } },
      ['name'],
      false,
    ),
    describeSearchTool(
      SEARCH_TOOL_NAMES.call,
      'Call a tool',
      'Calls a tool with arguments that fit its schema.',
      {
        name: { type: 'string', description: 'The name of the tool.' },
        arguments: { type: 'object', description: 'Its arguments.' },
      },
      ['name'],
      canWrite,
    ),
  ]
}

function describeSearchTool(
  name: string,
  title: string,
  description: string,
  properties: JsonObject,
  required: readonly string[],
  isWrite: boolean,
): ToolDescription {
  return {
    name,
    title,
    description,
    inputSchema: { type: 'object', properties, required: [...required], additionalProperties: false },
    annotations: {
      title,
      readOnlyHint: !isWrite,
      destructiveHint: isWrite,
      idempotentHint: !isWrite,
      openWorldHint: true,
    },
  }
}

/** What a call of the search mode comes to: a result, or the call of the tool that it names. */
export type SearchOutcome = { readonly result: ToolResult } | { readonly call: ToolCall }

/** Calls one of the three tools of the search mode; for `call_tool` returns the call that is to be made. */
export function callSearchTool(space: SearchSpace, call: ToolCall): SearchOutcome {
  const { searchable, resultBytesMax, unknownTool } = space
  const tool = searchTools(searchable.length, space.canWrite).find((each) => each.name === call.name)
  if (tool === undefined) {
    const near = suggest(
      call.name,
      searchTools(searchable.length, space.canWrite).map((each) => each.name),
    )
    const hint = `call it as ${SEARCH_TOOL_NAMES.call} with name and arguments`
    const error = toolError('validation', `${call.name} is no tool of this list${near || ';'} ${hint}`, { status: 404 })
    return { result: errorResult(error) }
  }
  const read = readArguments(tool.inputSchema, call.arguments)
  const fields = checkArguments(tool.inputSchema, read)
  if (fields.length > 0)
    return { result: errorResult(toolError('validation', `${call.name} was not called`, { fields })) }
  const { query, limit, name, arguments: given } = read
  if (call.name === SEARCH_TOOL_NAMES.call)
    return { call: { ...call, name: String(name), arguments: isJsonObject(given) ? given : {} } }
  if (call.name === SEARCH_TOOL_NAMES.search) {
    const found = findTools(searchable, String(query), typeof limit === 'number' ? limit : undefined)
    const tools = found.tools.map((each) => ({ name: each.name, description: each.description }))
    const counts = { matches: found.matches, total: searchable.length }
    const advice = found.matches === 0 ? { advice: NOTHING_FOUND } : {}
    return { result: successResult({ tools, ...counts, ...advice }, resultBytesMax) }
  }
  const described = searchable.find((each) => each.name === name)
  if (described === undefined) return { result: errorResult(unknownTool(String(name))) }
  return { result: successResult(describeForSearch(described), resultBytesMax) }
}

function describeForSearch({ name, description, inputSchema, annotations }: ToolDescription): JsonObject {
  return { name, description, input_schema: inputSchema, annotations: { ...annotations } }
}

/** A tool as words with their weights. */
interface IndexedTool {
  readonly tool: SearchableTool
  readonly weights: ReadonlyMap<string, number>
  readonly length: number
}

/** The best tools, and how many match. */
interface FoundTools {
  readonly tools: readonly SearchableTool[]
  readonly matches: number
}

const indexes = new WeakMap<readonly SearchableTool[], readonly IndexedTool[]>()

/**
 * The tools that fit the words best, ranked by BM25 over names, tags and descriptions; of a query without words the first ones.
 * Ties are in the order of the list. The first 32 distinct words count.
 *
 * @param limit at most 50; absent: 10
 */
function findTools(tools: readonly SearchableTool[], query: string, limit = LIMIT_DEFAULT): FoundTools {
  const index = indexes.get(tools) ?? tools.map(indexTool)
  indexes.set(tools, index)
  const words = [...new Set(wordsOf(query))].slice(0, WORDS_MAX)
  const lengthMean = index.reduce((sum, { length }) => sum + length, 0) / Math.max(index.length, 1)
  const rarity = new Map(words.map((word) => [word, rarityOf(word, index)] as const))
  const scored = index.map((each) => ({ tool: each.tool, score: scoreOf(each, rarity, lengthMean) }))
  const matching = words.length === 0 ? scored : scored.filter(({ score }) => score > 0)
  const ranked = matching.sort((one, other) => other.score - one.score)
  return { tools: ranked.slice(0, Math.min(limit, LIMIT_MAX)).map(({ tool }) => tool), matches: matching.length }
}

function indexTool(tool: SearchableTool): IndexedTool {
  const weights = new Map<string, number>()
  const add = (text: string, weight: number) => {
    for (const word of wordsOf(text)) weights.set(word, (weights.get(word) ?? 0) + weight)
  }
  add(tool.name, NAME_WEIGHT)
  add(tool.tags.join(' '), TAG_WEIGHT)
  add(tool.description, 1)
  const length = [...weights.values()].reduce((sum, weight) => sum + weight, 0)
  return { tool, weights, length }
}

/** Lower case, without the s of a plural, so that `contact` finds `list_contacts`. */
function wordsOf(text: string): readonly string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  return words.map((word) => (word.length > 3 ? word.replace(/ies$/, 'y').replace(/([^s])s$/, '$1') : word))
}

function rarityOf(word: string, index: readonly IndexedTool[]): number {
  const having = index.filter(({ weights }) => weights.has(word)).length
  return Math.log(1 + (index.length - having + 0.5) / (having + 0.5))
}

function scoreOf({ weights, length }: IndexedTool, rarity: ReadonlyMap<string, number>, lengthMean: number): number {
  let score = 0
  for (const [word, rare] of rarity) {
    const weight = weights.get(word) ?? 0
    score += (rare * weight * (K1 + 1)) / (weight + K1 * (1 - B + (B * length) / lengthMean))
  }
  return score
}
