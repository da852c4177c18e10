import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { escapeControls, printError, printJson, printLine, printLines } from '../../../../src/cli/commands/output.ts'
import { renderLine } from '../../../../src/cli/commands/run-format.ts'
import { LinesDisplay } from '../../../../src/cli/commands/run-lines.ts'
import { keepPrinted } from '../../../support/printed-output.ts'

const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u
const CONTROLS = Array.from({ length: 0x1_0000 }, (_, code) => String.fromCharCode(code)).filter((each) =>
  CONTROL.test(each),
)
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
    expect(printed.text.replaceAll('\n', '')).not.toMatch(CONTROL)
  })

  test('and other texts stay as they are', () => {
    expect(escapeControls('Müller → 日本 👋 "x" \\n')).toBe('Müller → 日本 👋 "x" \\n')
  })
})

test('no command prints past the functions of output.ts', () => {
  const root = join(import.meta.dirname, '../../../../src/cli/commands')
  const others = globSync('**/*.ts', { cwd: root }).filter((path) => path !== 'output.ts')
  const found = others.filter((path) =>
    /\bconsole\.|process\.std(?:out|err)\.write\(/.test(readFileSync(join(root, path), 'utf8')),
  )
  expect(found).toEqual([])
})
