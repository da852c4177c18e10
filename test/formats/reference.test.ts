import { join } from 'node:path'
import { expect, test } from 'vitest'
import { renderFormatReference } from '../../src/formats/reference.ts'

test('the reference page is what the registries say (renew it with vitest -u)', async () => {
  const path = join(import.meta.dirname, '../../src/formats/REFERENCE.md')
  await expect(renderFormatReference()).toMatchFileSnapshot(path)
})

test('every key of every format says what it means', () => {
  const silent = renderFormatReference()
    .split('\n')
    .filter((line) => /\|\s*\|$/.test(line))
  expect(silent).toEqual([])
})
