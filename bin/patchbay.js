#!/usr/bin/env node
/**
 * Entry point of the package, and of units and images. The one file that any version of Node can read: an older one would
 * end with an error of its own before the program could say what it needs.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NODE_MAJOR_MIN = 24
const THIS_FILE = fileURLToPath(import.meta.url)

if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR_MIN) {
  const installed = installedNode()
  const advice =
    installed === undefined
      ? `install Node ${NODE_MAJOR_MIN}`
      : `start it with the one that was installed with it, ${installed} ${THIS_FILE}`
  process.stderr.write(
    `Patchbay needs Node ${NODE_MAJOR_MIN} or newer, and this is ${process.versions.node}: ${advice}\n`,
  )
  process.exitCode = 1
} else {
  // A package has JavaScript beside the sources, because Node strips no types below node_modules; a clone has none.
  const isPackage = existsSync(join(THIS_FILE, '../../src/main.js'))
  await import(isPackage ? '../src/main.js' : '../src/main.ts')
}

/** The Node that npm installs on Linux as an optional dependency, under the name of the platform. */
function installedNode() {
  try {
    const manifest = createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/package.json`)
    return join(manifest, '../bin/node')
  } catch {
    return undefined
  }
}
