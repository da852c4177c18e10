/**
 * `npm run stats [DIR]`: the size and shape of `src` without generated code, of this checkout or another one, as one JSON line
 * per figure. What it counts is what makes a code base slow to read: many small files, long ones, many dependency
 * interfaces, one name for several types. The journeys are those that `src/README.md` lists.
 */

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readJourneys } from '../../support/journeys.ts'

const SMALL_FILE_LINES = 25
const TYPE = /^(?:export )?(?:interface|type|class|abstract class) (\w+)/gm
const COMMENT_LINE = /^\s*(?:\/\/|\/\*|\*)/

const root = process.argv[2] ?? join(import.meta.dirname, '../../..')
const files = globSync('src/**/*.ts', { cwd: root }).map((path) => readFileSync(join(root, path), 'utf8'))
const lengths = files.map((text) => text.split('\n').length - 1).sort((one, other) => one - other)
const lines = files.flatMap((text) => text.split('\n').slice(0, -1))
const types = files.flatMap((text) => [...text.matchAll(TYPE)].map(([, name = '']) => name))
const declarations = Map.groupBy(types, (name) => name)
const declaredTwice = [...declarations].filter(([, found]) => found.length > 1).map(([name]) => name)

report('files', files.length)
report('lines', lines.length)
report('lines-median', percentile(0.5))
report('lines-p90', percentile(0.9))
report('lines-max', percentile(1))
report('files-small', lengths.filter((length) => length < SMALL_FILE_LINES).length)
report('deps-interfaces', types.filter((name) => name.endsWith('Deps')).length)
report('types-declared-twice', declaredTwice.length, declaredTwice.sort())
for (const { title, steps } of readJourneys(root))
  report(`journey-functions: ${title}`, steps.flatMap(({ functions }) => functions).length)
report('comment-share', share(lines.filter((line) => COMMENT_LINE.test(line)).length, lines.length))

function percentile(rank: number): number {
  return lengths[Math.max(0, Math.ceil(rank * lengths.length) - 1)] ?? 0
}

function share(part: number, whole: number): number {
  return Number((part / whole).toFixed(3))
}

function report(name: string, value: number, which?: readonly string[]): void {
  process.stdout.write(
    `${JSON.stringify({ name: `stats-${name}`, value, ...(which === undefined ? {} : { which }) })}\n`,
  )
}
