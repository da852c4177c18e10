import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** It exits by itself after this. */
const LIFETIME_MS = 3_600_000

/** Shell variables by name. */
type Variables = Readonly<Record<string, string>>

/**
 * Runs a script's stand-in for a third party in the background, and prints its variables for `eval`; the script calls this in
 * both processes.
 * @param pidVariable name of the variable with the id of the background process
 */
export async function runStandIn(file: string, pidVariable: string, serve: () => Promise<Variables>): Promise<void> {
  if (process.send === undefined) return await startInBackground(file, pidVariable)
  process.on('SIGTERM', () => process.exit())
  setTimeout(() => process.exit(), LIFETIME_MS)
  process.send(await serve())
}

async function startInBackground(file: string, pidVariable: string): Promise<void> {
  const child = spawn(process.execPath, [file], { detached: true, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  const [variables] = await once(child, 'message')
  child.disconnect()
  child.unref()
  // Commands that open the database themselves, such as `install`, check addresses too.
  const egress = { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' }
  for (const [name, value] of Object.entries({ ...variables, [pidVariable]: child.pid, ...egress }))
    process.stdout.write(`export ${name}=${value}\n`)
}
