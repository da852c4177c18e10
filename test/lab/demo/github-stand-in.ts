/**
 * `npm run github-stand-in`: the emulation of GitHub and a webhook receiver in the background, for the steps of the README
 * without internet access. Prints shell variables for `eval`.
 */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startGitHub } from './github.ts'
import { runStandIn } from './stand-in.ts'

await runStandIn(import.meta.filename, 'STAND_IN_PID', async () => {
  const github = await startGitHub()
  const receiver = createServer((request, response) => {
    request.resume()
    request.on('end', () => response.writeHead(204).end())
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const { port } = receiver.address() as AddressInfo
  return { GITHUB_URL: github.url, GITHUB_TOKEN: github.token, WEBHOOK_URL: `http://127.0.0.1:${port}/hooks/patchbay` }
})
