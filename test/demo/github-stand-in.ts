/**
 * `npm run github-stand-in`: the emulation of GitHub and a webhook receiver in the background, for the steps of the README
 * without internet access. Prints shell variables for `eval`.
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startGitHub } from './github.ts'

/** It exits by itself after this. */
const LIFETIME_MS = 3_600_000

if (process.send === undefined) await startInBackground()
else await serve(process.send.bind(process))

async function startInBackground(): Promise<void> {
  const child = spawn(process.execPath, [import.meta.filename], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  const [variables] = await once(child, 'message')
  child.disconnect()
  child.unref()
  // Commands that open the database themselves, such as `install`, check addresses too.
  const egress = { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' }
  for (const [name, value] of Object.entries({ ...variables, STAND_IN_PID: child.pid, ...egress }))
    process.stdout.write(`export ${name}=${value}\n`)
}

async function serve(tell: (variables: Readonly<Record<string, string>>) => void): Promise<void> {
  const github = await startGitHub()
  const receiver = createServer((request, response) => {
    request.resume()
    request.on('end', () => response.writeHead(204).end())
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const { port } = receiver.address() as AddressInfo
  process.on('SIGTERM', () => process.exit())
  setTimeout(() => process.exit(), LIFETIME_MS)
  tell({ GITHUB_URL: github.url, GITHUB_TOKEN: github.token, WEBHOOK_URL: `http://127.0.0.1:${port}/hooks/patchbay` })
}
