import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Cases as JSON: what third parties answer, and what is made of it. */
const FOLDER = join(import.meta.dirname, '../data')
/** Objects and lists that are longer than this in one line are one line per member, down to this depth: the cases. */
const LINE_MAX = 120
const CASES_DEPTH = 2

/** A token of JSON; blanks between tokens are none. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g

/** Paths of the files below a folder of `test/data`, relative to it, sorted. */
export function dataFiles(folder: string): readonly string[] {
  return globSync('**/*.json', { cwd: join(FOLDER, folder) }).sort()
}

export function dataPath(file: string): string {
  return join(FOLDER, file)
}

/** What a file of `test/data` holds; `undefined` when there is none. */
export function readData<Content>(file: string): Content | undefined {
  const path = dataPath(file)
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Content) : undefined
}

export function writeData(file: string, content: unknown): void {
  const path = dataPath(file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, formatData(JSON.stringify(content)))
}

/** The JSON text with one line per case; strings and numbers stay as they are written. */
export function formatData(json: string): string {
  const tokens = json.match(TOKEN) ?? []
  let at = 0
  const next = (): string => tokens[at++] ?? ''

  /** The text of the value that begins here, in one line and as it is shown at that depth. */
  function format(depth: number): { readonly line: string; readonly shown: string } {
    const open = next()
    if (open !== '{' && open !== '[') return { line: open, shown: open }
    const members: { line: string; shown: string }[] = []
    while (tokens[at] !== '}' && tokens[at] !== ']') {
      const name = open === '{' ? `${next()}${next()} ` : ''
      const { line, shown } = format(depth + 1)
      members.push({ line: name + line, shown: name + shown })
      if (tokens[at] === ',') at++
    }
    const close = next()
    const line = `${open}${members.map((member) => member.line).join(', ')}${close}`
    if (depth >= CASES_DEPTH || line.length <= LINE_MAX) return { line, shown: line }
    const [indent, outer] = ['  '.repeat(depth + 1), '  '.repeat(depth)]
    return { line, shown: `${open}\n${members.map(({ shown }) => indent + shown).join(',\n')}\n${outer}${close}` }
  }

  return `${format(0).shown}\n`
}
