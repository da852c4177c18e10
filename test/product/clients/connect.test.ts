import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'

const FOLDER = join(import.meta.dirname, '../../../clients/connect')
const SIZE_MAX_BYTES = 6_000

function read(name: string): string {
  return readFileSync(join(FOLDER, name), 'utf8')
}

function exportedValues(text: string): string[] {
  return [...text.matchAll(/^export (?:async )?(?:function|class|const) (\w+)/gm)].map(([, name = '']) => name).sort()
}

// What it does in a browser is tested in test/lab/browser.
describe('the connect client', () => {
  it(`is at most ${SIZE_MAX_BYTES} bytes compressed`, () => {
    expect(gzipSync(read('connect.js')).length).toBeLessThanOrEqual(SIZE_MAX_BYTES)
  })

  it('has no dependency and no build step', () => {
    const manifest = JSON.parse(read('package.json'))
    expect(manifest).not.toHaveProperty('dependencies')
    expect(manifest).not.toHaveProperty('scripts')
    expect(read('connect.js')).not.toMatch(/^import |import\(|require\(/m)
  })

  it('declares exactly the values it exports', () => {
    expect(exportedValues(read('connect.d.ts'))).toEqual(exportedValues(read('connect.js')))
  })

  it('packs only files that exist', () => {
    const { files, exports } = JSON.parse(read('package.json'))
    const named: readonly string[] = [...files, exports['.'].types, exports['.'].default]
    expect(named.filter((name) => read(name) === '')).toEqual([])
  })
})
