import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { someCases } from '../../support/case-count.ts'
import { CommandProcess } from '../../support/command.ts'
import { EVENTUALLY } from '../../support/eventually.ts'
import { preparedDataDir } from '../../support/prepared-data-dir.ts'
import { freePort, removeDataDir } from '../../support/product.ts'

/** Runs a command whose output nothing reads, as below `| head` that has ended. */
async function runUnread(args: readonly string[], environment: NodeJS.ProcessEnv = {}) {
  const process = new CommandProcess(args, environment)
  process.child.stdout?.destroy()
  return await process.ended
}

/** Commands that print their output in one piece and in many, of little and of much code. */
const COMMANDS = [
  ['--help'],
  ['catalog'],
  ['unified check crm/hubspot'],
  ['unified try crm/hubspot --fixture test/data/unified-calls/fixtures/crm/hubspot.json'],
  ['unified try crm/hubspot --fixture test/data/unified-calls/fixtures/crm/hubspot.json --json'],
]

it.each(someCases(COMMANDS, 1))('`patchbay %s` ends without a message when its output is closed', async (line) => {
  expect(await runUnread(line.split(' '))).toMatchObject({ exitCode: 141, stderr: '' })
})

it('a server goes on when its output is closed and its log is full, and stops in order', async () => {
  const dataDir = preparedDataDir()
  onTestFinished(() => removeDataDir(dataDir))
  const port = await freePort()
  const settings = { PATCHBAY_DATA_DIR: dataDir, PATCHBAY_PORT: String(port), PATCHBAY_LOG_LEVEL: 'debug' }
  const full = openSync('/dev/full', 'w')
  onTestFinished(() => closeSync(full))
  const server = new CommandProcess(['start'], settings, ['ignore', 'pipe', full])
  server.child.stdout?.destroy()
  // Its ready line, the first that meets the closed pipe, comes after it listens: it lives until a signal all the same.
  await vi.waitFor(async () => expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200), EVENTUALLY)
  expect(await server.stop()).toMatchObject({ exitCode: 0 })
  expect(existsSync(join(dataDir, 'postgres/data/postmaster.pid'))).toBe(false)
})
