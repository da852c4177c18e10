/**
 * `npm run test:browser [vitest arguments]`: the connect page and the connect client in a real Chromium. Installs Debian's
 * Chromium and the font of the screenshots when they are missing and this process may; else it names what is missing.
 */

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { FONT_FILE, findChromium, hasFont } from './support/chromium.ts'

const ROOT = join(import.meta.dirname, '../../..')

function run(command: string, args: readonly string[]): boolean {
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit' })
  return error === undefined && status === 0
}

function missingPackages(): readonly string[] {
  return [...(findChromium() === undefined ? ['chromium'] : []), ...(hasFont() ? [] : ['fonts-dejavu-core'])]
}

/** @returns what is still missing */
function install(packages: readonly string[]): readonly string[] {
  process.stdout.write(`Installing ${packages.join(' and ')}\n`)
  const isInstalled =
    run('apt-get', ['update', '-q']) && run('apt-get', ['install', '-y', '-q', '--no-install-recommends', ...packages])
  return isInstalled ? missingPackages() : packages
}

function main(): number {
  const wanted = missingPackages()
  const missing = wanted.length > 0 && process.getuid?.() === 0 ? install(wanted) : wanted
  if (missing.includes('chromium')) {
    process.stderr.write(
      'There is no Chromium. Install one (Debian: apt-get install chromium), or name its executable in CHROMIUM.\n',
    )
    return 1
  }
  if (missing.length > 0)
    process.stderr.write(`${FONT_FILE} is missing (Debian: fonts-dejavu-core): screenshots are not compared.\n`)
  const config = join(import.meta.dirname, 'vitest.config.ts')
  return run('vitest', ['run', '--config', config, ...process.argv.slice(2)]) ? 0 : 1
}

process.exitCode = main()
