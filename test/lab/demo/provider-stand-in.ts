/**
 * `npm run provider-stand-in`: a third party with OAuth consent in the background, for the steps of the README. Prints shell
 * variables for `eval`; PROVIDER_DEFINITION is a file with its definition.
 */

import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProvider } from '../browser/peers/provider.ts'
import { definitionOf, WORKSPACES } from '../browser/support/definitions.ts'
import { runStandIn } from './stand-in.ts'

await runStandIn(import.meta.filename, 'PROVIDER_PID', async () => {
  const provider = await startProvider('127.0.0.1')
  const config = { ...definitionOf('plain', provider.url), resources: { workspaces: WORKSPACES } }
  const path = join(mkdtempSync(join(tmpdir(), 'patchbay-provider-')), 'stand-in.json')
  writeFileSync(path, JSON.stringify({ name: 'stand-in', config }, null, 2))
  return { PROVIDER_URL: provider.url, PROVIDER_DEFINITION: path }
})
