import type { JsonObject } from '../base/index.ts'
import type { ServerTool, ToolDescription } from './tool.ts'

/** The names of the tools of the search mode. */
export const SEARCH_TOOL_NAMES = { search: 'search_tools', describe: 'describe_tool', call: 'call_tool' } as const

const LIMIT_DEFAULT = 10
const LIMIT_MAX = 50
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
        query: { type: 'string', description: 'Words such as list contacts.' },
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

/** A tool as words with their weights. */
interface IndexedTool {
  readonly tool: ServerTool
  readonly weights: ReadonlyMap<string, number>
  readonly length: number
}

const indexes = new WeakMap<readonly ServerTool[], readonly IndexedTool[]>()

/**
 * The tools that fit the words best, ranked by BM25 over names, titles, tags and descriptions; without a word that occurs the
 * first ones. Ties are in the order of the list.
 *
 * @param limit at most 50; absent: 10
 */
export function findTools(tools: readonly ServerTool[], query: string, limit = LIMIT_DEFAULT): readonly ServerTool[] {
  const index = indexes.get(tools) ?? tools.map(indexTool)
  indexes.set(tools, index)
  const words = new Set(wordsOf(query))
  const lengthMean = index.reduce((sum, { length }) => sum + length, 0) / Math.max(index.length, 1)
  const rarity = new Map([...words].map((word) => [word, rarityOf(word, index)] as const))
  const scored = index.map((each) => ({ tool: each.tool, score: scoreOf(each, rarity, lengthMean) }))
  const matching = scored.filter(({ score }) => score > 0)
  const ranked = matching.length === 0 ? scored : matching.sort((one, other) => other.score - one.score)
  return ranked.slice(0, Math.min(limit, LIMIT_MAX)).map(({ tool }) => tool)
}

function indexTool(tool: ServerTool): IndexedTool {
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
