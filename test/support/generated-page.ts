import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

/**
 * Compares a page of the repository, or the part of it between `<!-- marker -->` and `<!-- /marker -->`, with what it is generated from.
 * With WRITE_DOCS=1 (`npm run docs`) it is written.
 */
export function expectGenerated(page: string, fresh: string, marker?: string): void {
  const file = join(ROOT, page)
  const text = readFileSync(file, 'utf8')
  const whole = marker === undefined ? fresh : withPart(text, marker, fresh)
  if (process.env.WRITE_DOCS === '1') writeFileSync(file, whole)
  else expect(text).toBe(whole)
}

function withPart(text: string, marker: string, fresh: string): string {
  const part = new RegExp(`(<!-- ${marker} -->\\n)[\\s\\S]*?(<!-- /${marker} -->)`)
  expect(text).toMatch(part)
  return text.replace(part, (_, open, close) => `${open}${fresh.trimEnd()}\n${close}`)
}
