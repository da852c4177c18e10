import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { dataFiles, dataPath, formatData } from '../support/data-files.ts'

const isWriting = process.env.WRITE_GOLDEN !== undefined

test('each file of data has one line per case; WRITE_GOLDEN=1 writes it so', () => {
  const unformatted = dataFiles('.').filter((file) => {
    const text = readFileSync(dataPath(file), 'utf8')
    const formatted = formatData(text)
    if (isWriting) writeFileSync(dataPath(file), formatted)
    return !isWriting && text !== formatted
  })
  expect(unformatted).toEqual([])
})

test.each([
  ['{"a":{}}', '{"a": {}}\n'],
  ['{"text": "{\\"a\\", [1]}", "number": 1.50e2}', '{"text": "{\\"a\\", [1]}", "number": 1.50e2}\n'],
  [
    `{"contacts":{"list":{"long":["${'x'.repeat(120)}"]},"get":{}}}`,
    `{\n  "contacts": {\n    "list": {"long": ["${'x'.repeat(120)}"]},\n    "get": {}\n  }\n}\n`,
  ],
])('formats %s', (json, formatted) => {
  expect(formatData(json)).toBe(formatted)
  expect(formatData(formatted)).toBe(formatted)
})
