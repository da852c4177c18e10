/**
 * JavaScript beside the sources, for `npm pack`: Node strips no types below `node_modules`. `prepack` writes it, and `postpack`
 * (`--remove`) takes it away again, so that a clone has one file for each module.
 *
 * Types are stripped as Node does it in a clone, so that lines and columns stay the same. Relative paths to a source, in
 * imports and in the URLs of threads and child processes, then end with `.js`.
 */
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../../..')
const SOURCES = globSync('{src,gen}/**/*.ts', { cwd: ROOT, exclude: ['src/cli/codegen/**'] })
const RELATIVE_PATH = /(['"])(\.{1,2}\/[^'"\s]*)\.ts\1/g

for (const source of SOURCES) {
  const path = join(ROOT, source)
  const target = path.replace(/\.ts$/, '.js')
  if (process.argv.includes('--remove')) rmSync(target, { force: true })
  else writeFileSync(target, stripTypeScriptTypes(readFileSync(path, 'utf8')).replace(RELATIVE_PATH, '$1$2.js$1'))
}
