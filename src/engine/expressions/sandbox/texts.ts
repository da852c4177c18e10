/** Deepest nesting of a text that `$jsonParse` reads. */
const JSON_DEPTH_MAX = 100

/** Longest address that `$parseUrl` reads, in characters. */
const URL_LENGTH_MAX = 8_192

/** `$jsonParse(text)`: the value of a JSON text; nothing when it is none. */
export function jsonParse(text: unknown): unknown {
  if (typeof text !== 'string' || isTooDeep(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isTooDeep(text: string): boolean {
  let depth = 0
  let isInString = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (isInString) {
      if (character === '\\') at++
      else if (character === '"') isInString = false
    } else if (character === '"') isInString = true
    else if (character === '[' || character === '{') depth++
    else if (character === ']' || character === '}') depth--
    if (depth > JSON_DEPTH_MAX) return true
  }
  return false
}

/**
 * `$parseUrl(text)`: `{scheme, host, port, path, query, fragment}` of an absolute address, without what is empty; nothing
 * when it is none. `query` has the first value of each name.
 */
export function parseUrl(text: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof text !== 'string' || text.length > URL_LENGTH_MAX || !URL.canParse(text)) return undefined
  const { protocol, hostname, port, pathname, searchParams, hash } = new URL(text)
  const query = Object.fromEntries([...searchParams].reverse())
  return {
    scheme: protocol.slice(0, -1),
    ...(hostname !== '' && { host: hostname }),
    ...(port !== '' && { port: Number(port) }),
    ...(pathname !== '' && { path: pathname }),
    ...(searchParams.size > 0 && { query }),
    ...(hash !== '' && { fragment: hash.slice(1) }),
  }
}

/** Elements that start a line. */
const BLOCKS: ReadonlySet<string> = new Set(
  'address article blockquote br dd div dl dt footer h1 h2 h3 h4 h5 h6 header hr li ol p pre section table tr ul'.split(
    ' ',
  ),
)

/** Elements whose content is not text. */
const HIDDEN: ReadonlySet<string> = new Set(['script', 'style', 'head', 'title', 'template'])

/**
 * `$htmlToText(text)`: the text without tags, comments, scripts and styles, with character references decoded; paragraphs
 * and line breaks become one line break each. Linear in the text.
 */
export function htmlToText(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined
  const parts: string[] = []
  let at = 0
  while (at < text.length) {
    const open = text.indexOf('<', at)
    if (open === -1) break
    const next = text[open + 1] ?? ''
    if (!/[a-z/!?]/i.test(next)) {
      parts.push(blanksJoined(text.slice(at, open + 1)))
      at = open + 1
      continue
    }
    parts.push(blanksJoined(text.slice(at, open)))
    at = skipTag(text, open, parts)
  }
  parts.push(blanksJoined(text.slice(at)))
  const lines = parts.join('').split('\n')
  return decodeReferences(
    lines
      .map((line) => line.replace(/ {2,}/g, ' ').trim())
      .filter((line) => line !== '')
      .join('\n'),
  )
}

function blanksJoined(text: string): string {
  return text.replace(/[ \t\r\n]+/g, ' ')
}

/** @returns where the text continues after the tag, and after the content of a hidden element */
function skipTag(text: string, open: number, parts: string[]): number {
  if (text.startsWith('<!--', open)) return after(text, '-->', open)
  const name = /[a-z][a-z0-9]{0,15}/i.exec(text.slice(open + 1, open + 18))?.[0].toLowerCase() ?? ''
  if (BLOCKS.has(name)) parts.push('\n')
  const end = after(text, '>', open)
  if (!HIDDEN.has(name) || text[open + 1] === '/') return end
  const close = indexOfClosing(text, name, end)
  return close === -1 ? text.length : after(text, '>', close)
}

function indexOfClosing(text: string, name: string, from: number): number {
  for (let at = text.indexOf('</', from); at !== -1; at = text.indexOf('</', at + 2)) {
    if (text.slice(at + 2, at + 2 + name.length).toLowerCase() === name) return at
  }
  return -1
}

function after(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from)
  return at === -1 ? text.length : at + mark.length
}

const NAMED: ReadonlyMap<string, string> = new Map(
  Object.entries({
    amp: '&',
    lt: '<',
    gt: '>',
    quot: '"',
    apos: "'",
    nbsp: ' ',
    copy: '©',
    reg: '®',
    trade: '™',
    hellip: '…',
    ndash: '–',
    mdash: '—',
    lsquo: '‘',
    rsquo: '’',
    ldquo: '“',
    rdquo: '”',
    bull: '•',
    euro: '€',
    pound: '£',
  }),
)

function decodeReferences(text: string): string {
  return text.replace(/&(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,6});/gi, (whole, name: string) => {
    if (!name.startsWith('#')) return NAMED.get(name) ?? whole
    const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
    return code > 0 && code <= 0x10_ff_ff && !(code >= 0xd8_00 && code <= 0xdf_ff) ? String.fromCodePoint(code) : whole
  })
}
