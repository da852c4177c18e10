import { expect, it, onTestFinished } from 'vitest'
import { someCases } from '../support/case-count.ts'
import { CommandProcess } from '../support/command.ts'
import { preparedDataDir } from '../support/prepared-data-dir.ts'
import { freePort, removeDataDir } from '../support/product.ts'

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

it('a server stops in order when its output is closed', async () => {
  const dataDir = preparedDataDir()
  onTestFinished(() => removeDataDir(dataDir))
  const settings = { PATCHBAY_DATA_DIR: dataDir, PATCHBAY_PORT: String(await freePort()), PATCHBAY_LOG_LEVEL: 'warn' }
  expect(await runUnread(['start'], settings)).toMatchObject({ exitCode: 0, stderr: '' })
})
