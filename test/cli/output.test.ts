import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { escapeControls, printError, printJson, printLine, printLines } from '../../src/cli/output.ts'
import { renderLine } from '../../src/cli/run-format.ts'
import { LinesDisplay } from '../../src/cli/run-lines.ts'
import { keepPrinted } from '../support/printed-output.ts'

const CONTROLS = [...Array(0xa0).keys(), 0x2028, 0x2029, 0x202a, 0x202e, 0x2066, 0x2069]
  .filter((code) => code < 0x20 || code > 0x7e)
  .map((code) => String.fromCharCode(code))
const ALL = `a${CONTROLS.join('')}b`

const printed = keepPrinted()

describe('control characters are shown as escapes', () => {
  test.each<[string, () => void, number]>([
    ['a line', () => printLine(ALL), 1],
    ['lines', () => printLines([ALL, ALL]), 2],
    ['JSON', () => printJson(ALL), 1],
    ['errors', () => printError([ALL, ALL]), 2],
    [
      'cells',
      () => void process.stdout.write(`${renderLine([{ text: ALL, tone: 'bad' }], 10_000, (_, text) => text)}\n`),
      1,
    ],
    [
      'progress of a run',
      () => {
        const write = (text: string) => void process.stdout.write(text)
        new LinesDisplay({ write, now: () => new Date() }).show({
          kind: 'disconnected',
          message: ALL.replace('\n', ''),
        })
      },
      1,
    ],
  ])('in %s', (_what, print, lines) => {
    print()
    expect(printed.text.split('\n')).toHaveLength(lines + 1)
    expect(printed.text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/u)
  })

  test('and other texts stay as they are', () => {
    expect(escapeControls('Müller → 日本 👋 "x" \\n')).toBe('Müller → 日本 👋 "x" \\n')
  })
})

test('no command prints past the functions of output.ts', () => {
  const root = join(import.meta.dirname, '../../src/cli')
  const others = globSync('**/*.ts', { cwd: root }).filter((path) => path !== 'output.ts')
  const found = others.filter((path) =>
    /\bconsole\.|process\.std(?:out|err)\.write\(/.test(readFileSync(join(root, path), 'utf8')),
  )
  expect(found).toEqual([])
})
