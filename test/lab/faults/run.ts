/**
 * `npm run faults [name…]`: breaks things on purpose and counts what was lost, all scripts when none is named.
 *
 * Each figure is one JSON line `{name, value, unit, target, ok}`.
 */

import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const scripts = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.ts') && file !== 'run.ts')
  .map((file) => file.slice(0, -3))
const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !scripts.includes(name))

if (unknown.length > 0) {
  process.stderr.write(`no fault script ${unknown.join(', ')}; there are ${scripts.join(', ')}\n`)
  process.exitCode = 2
} else {
  // Each script gets its own process: it kills others, and one that fails must not take the next along.
  for (const name of asked.length > 0 ? asked : scripts) {
    const { status } = spawnSync(process.execPath, [join(import.meta.dirname, `${name}.ts`)], { stdio: 'inherit' })
    if (status !== 0) process.exitCode = 1
  }
}
