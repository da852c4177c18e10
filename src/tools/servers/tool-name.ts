import { createHash } from 'node:crypto'

/** Some clients cut names at 64 characters and put the name of the server in front. */
const TOOL_NAME_LENGTH_MAX = 48
/** Hexadecimal digits that keep shortened names apart. */
const HASH_LENGTH = 4

/** Nouns that end in s and have no other singular, or one that no rule below finds. */
const SINGULARS: Readonly<Record<string, string>> = {
  addresses: 'address',
  aliases: 'alias',
  analyses: 'analysis',
  analytics: 'analytics',
  bonuses: 'bonus',
  buses: 'bus',
  campuses: 'campus',
  children: 'child',
  details: 'details',
  movies: 'movie',
  news: 'news',
  people: 'person',
  preferences: 'preferences',
  series: 'series',
  settings: 'settings',
  sms: 'sms',
  statistics: 'statistics',
  statuses: 'status',
  viruses: 'virus',
}

/** What a tool is named after. */
export interface ToolNameParts {
  readonly method: string
  readonly resource: string
  /** The method concerns one record: its resource is named in the singular. */
  readonly isSingular: boolean
  /** Name of the integration; absent where all tools of the server are of one. */
  readonly prefix?: string | undefined
}

/**
 * The name of a tool: `list_contacts`, `get_contact`, of another method `search_contacts`; with the prefix
 * `hubspot_list_contacts`. Longer than 48 characters, it is cut and ends in a hash of the whole name.
 *
 * @param isPlural keeps the resource as it is named, where the singular would be the name of another tool
 */
export function toolName(parts: ToolNameParts, isPlural = false): string {
  return shorten(wholeName(parts, isPlural))
}

function wholeName({ method, resource, prefix = '', isSingular }: ToolNameParts, isPlural = false): string {
  const noun = snakeCase(resource)
  const named = isPlural || !isSingular ? noun : singular(noun)
  return [snakeCase(prefix), snakeCase(method), named].filter((part) => part !== '').join('_')
}

/** The singular of a resource in words: `line_items` → `line item`. */
export function singularNoun(resource: string): string {
  return singular(snakeCase(resource)).replaceAll('_', ' ')
}

/** The title of a tool: its name as words, the first one in upper case. */
export function toolTitle(parts: ToolNameParts): string {
  const text = wholeName({ ...parts, prefix: undefined }).replaceAll('_', ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Whether the name is cut. */
export function isShortened(parts: ToolNameParts): boolean {
  return wholeName(parts).length > TOOL_NAME_LENGTH_MAX
}

/** A name with a number, for the second tool of that name and later ones. */
export function numberedName(name: string, number: number): string {
  const suffix = `_${number}`
  return name.slice(0, TOOL_NAME_LENGTH_MAX - suffix.length) + suffix
}

function shorten(name: string): string {
  if (name.length <= TOOL_NAME_LENGTH_MAX) return name
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_LENGTH)
  return `${name.slice(0, TOOL_NAME_LENGTH_MAX - HASH_LENGTH - 1)}_${hash}`
}

function snakeCase(text: string): string {
  return text
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_|_$/g, '')
}

/** The singular of the last word of a name. */
function singular(name: string): string {
  const known = SINGULARS[name]
  if (known !== undefined) return known
  const at = name.lastIndexOf('_') + 1
  return name.slice(0, at) + singularWord(name.slice(at))
}

function singularWord(word: string): string {
  const known = SINGULARS[word]
  if (known !== undefined) return known
  if (/(?:ss|us|is)$/.test(word)) return word
  if (/[^aeiou]ies$/.test(word) && word.length > 4) return `${word.slice(0, -3)}y`
  if (/(?:sses|shes|ches|xes|zzes)$/.test(word)) return word.slice(0, -2)
  return word.endsWith('s') ? word.slice(0, -1) : word
}
