#!/usr/bin/env node
import { runCommand } from './cli/index.ts'

const NODE_MAJOR_MIN = 24

if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR_MIN) {
  process.stderr.write(`Patchbay needs Node ${NODE_MAJOR_MIN}: npm scripts bring it along, or install it\n`)
  process.exitCode = 1
} else {
  process.exitCode = await runCommand(process.argv.slice(2), process.env)
}
