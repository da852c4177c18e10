import { join } from 'node:path'
import { expect, test } from 'vitest'
import { renderFormatReference } from '../../src/formats/reference.ts'

test('REFERENCE.md is generated from the registries (update with --update)', async () => {
  const path = join(import.meta.dirname, '../../src/formats/REFERENCE.md')
  await expect(renderFormatReference()).toMatchFileSnapshot(path)
})

test('every setting of every format has a description', () => {
  const silent = renderFormatReference()
    .split('\n')
    .filter((line) => /\|\s*\|$/.test(line))
  expect(silent).toEqual([])
})
