/**
 * `npm run test:foreign`: calls a new server from Python (Debian's python3-grpcio and python3-protobuf), a gRPC
 * implementation that shares no code with ours: first a client, then a daemon that is killed and replaced by another. Before,
 * deliveries are verified by receivers in Python, Ruby and PHP (Debian's ruby and php-cli). Clients and the conformance tool of
 * the Model Context Protocol, a package of their own in `tools/mcp/`, use a tool server. The product itself is installed as
 * npm and pnpm do it, as a package and as a clone, and started. At the end nginx, HAProxy and tinyproxy (Debian's packages) stand
 * around servers of their own.
 */

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { testForeignDaemon } from './daemon-end-to-end.ts'
import { testForeignMcp } from './mcp.ts'
import { testInstalls } from './package.ts'
import { testProxies } from './proxies.ts'
import { testForeignReceivers } from './webhooks.ts'

const PYTHON = process.env.PYTHON ?? '/usr/bin/python3'
const ROOT = join(import.meta.dirname, '../../..')

if (!testForeignReceivers()) process.exitCode = 1
if (!(await testInstalls())) process.exitCode = 1

const dataDir = temporaryDataDir()
const descriptorSet = join(dataDir, 'patchbay.binpb')
const product = await startProduct({ dataDir, environment: { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' } })
try {
  run('buf', ['build', '--output', descriptorSet])
  run(PYTHON, [
    join(import.meta.dirname, 'client.py'),
    `127.0.0.1:${product.port}`,
    product.bootstrap.environment_token,
    descriptorSet,
  ])
  if (!(await testForeignMcp(product))) process.exitCode = 1
  await testForeignDaemon({ product, python: PYTHON, descriptorSet })
} finally {
  await product.stop()
  removeDataDir(dataDir)
}
if (!(await testProxies())) process.exitCode = 1

function run(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit' })
  if (error !== undefined) throw error
  if (status !== 0) process.exitCode = 1
}
