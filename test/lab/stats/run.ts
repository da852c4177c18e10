/**
 * `npm run stats [DIR]`: the size and shape of `src` without generated code, of this checkout or another one, as one JSON line
 * per figure. What it counts is what makes a code base slow to read: the floors and arrows of its wings and what crosses them, circles of
 * files, many small files, long ones, many dependency interfaces, one name for several types. A wing stands beside its budget. The
 * journeys are those that `src/README.md` lists.
 */

import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readJourneys } from '../../support/journeys.ts'
import {
  countFloors,
  findCircles,
  importsByFile,
  readSourceTree,
  type SourceFile,
  WINGS,
} from '../../support/source-tree.ts'

const SMALL_FILE_LINES = 25
const TYPE = /^(?:export )?(?:interface|type|class|abstract class) (\w+)/gm
const COMMENT_LINE = /^\s*(?:\/\/|\/\*|\*)/

const root = process.argv[2] ?? join(import.meta.dirname, '../../..')
const sources = readSourceTree(root)
const files = sources.map(({ text }) => text)
const lengths = files.map((text) => text.split('\n').length - 1).sort((one, other) => one - other)
const lines = files.flatMap((text) => text.split('\n').slice(0, -1))
const types = files.flatMap((text) => [...text.matchAll(TYPE)].map(([, name = '']) => name))
const declarations = Map.groupBy(types, (name) => name)
const declaredTwice = [...declarations].filter(([, found]) => found.length > 1).map(([name]) => name)

const top = readdirSync(join(root, 'src'), { withFileTypes: true })
report('top-level-folders', top.filter((entry) => entry.isDirectory()).length)
report('top-level-files', top.filter((entry) => entry.isFile()).length)
// Of a house without wings each folder at the top is one.
const wings = roomsBy(({ wing }) => wing)
report('wing-floors', countFloors(wings))
report(
  'wing-arrows',
  [...wings].reduce((sum, [, targets]) => sum + targets.size, 0),
)
report('circles-of-files', findCircles(importsByFile(sources)).length)
report('names-crossing-wings', namesCrossing().size)
for (const [wing, { budget }] of Object.entries(WINGS))
  report(`lines-of-${wing}`, sum(sources.filter((source) => source.wing === wing)), { budget })
report('markdown', execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' }).trim().split('\n').length)
report('files', files.length)
report('lines', lines.length)
report('lines-median', percentile(0.5))
report('lines-p90', percentile(0.9))
report('lines-max', percentile(1))
report('files-small', lengths.filter((length) => length < SMALL_FILE_LINES).length)
report('deps-interfaces', types.filter((name) => name.endsWith('Deps')).length)
report('types-declared-twice', declaredTwice.length, { which: declaredTwice.sort() })
for (const { title, steps } of readJourneys(root))
  report(`journey-functions: ${title}`, steps.flatMap(({ functions }) => functions).length)
report('comment-share', share(lines.filter((line) => COMMENT_LINE.test(line)).length, lines.length))

function percentile(rank: number): number {
  return lengths[Math.max(0, Math.ceil(rank * lengths.length) - 1)] ?? 0
}

function share(part: number, whole: number): number {
  return Number((part / whole).toFixed(3))
}

function sum(counted: readonly SourceFile[]): number {
  return counted.reduce((lines, file) => lines + file.lines, 0)
}

/** Which rooms each room imports. */
function roomsBy(roomOf: (file: SourceFile) => string): ReadonlyMap<string, ReadonlySet<string>> {
  const rooms = new Map<string, Set<string>>()
  const fileAt = new Map(sources.map((file) => [file.path, file]))
  for (const file of sources) {
    const reached = rooms.get(roomOf(file)) ?? new Set<string>()
    rooms.set(roomOf(file), reached)
    for (const { target } of file.imports) {
      const other = fileAt.get(target)
      if (other !== undefined && roomOf(other) !== roomOf(file)) reached.add(roomOf(other))
    }
  }
  return rooms
}

function namesCrossing(): ReadonlySet<string> {
  const fileAt = new Map(sources.map((file) => [file.path, file]))
  return new Set(
    sources.flatMap(({ wing, imports }) =>
      imports
        .filter(({ target }) => fileAt.has(target) && fileAt.get(target)?.wing !== wing)
        .flatMap(({ target, names }) => names.map((name) => `${target} ${name}`)),
    ),
  )
}

function report(name: string, value: number, more: Readonly<Record<string, unknown>> = {}): void {
  process.stdout.write(`${JSON.stringify({ name: `stats-${name}`, value, ...more })}\n`)
}
