import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { bareEnvironment, removeDataDir, startProduct, temporaryDataDir } from '../support/product.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The steps of the README's section "A call, and a run", as they are written there. */
function steps(): string {
  const [, section = ''] = readFileSync(join(ROOT, 'README.md'), 'utf8').split('\n## A call, and a run\n')
  return /```sh\n([\s\S]*?)```/.exec(section)?.[1] ?? ''
}

it('the steps of the README work in order against the local GitHub', { timeout: 120_000 }, async () => {
  const dataDir = temporaryDataDir()
  const product = await startProduct({ dataDir, environment: { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' } })
  onTestFinished(async () => {
    await product.stop()
    removeDataDir(dataDir)
  })
  const script = steps().replaceAll('localhost:8080', `127.0.0.1:${product.port}`).replaceAll('./.patchbay', dataDir)
  expect(script).toContain('eval "$(npm run -s github-stand-in)"')

  const environment = {
    PATCHBAY_DATA_DIR: dataDir,
    PATCHBAY_PORT: String(product.port),
  }
  const shell = spawn('bash', ['-euo', 'pipefail', '-c', `trap 'kill $STAND_IN_PID' EXIT\n${script}`], {
    cwd: ROOT,
    env: { ...bareEnvironment(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const exitCode = await new Promise<number | null>((resolve) => shell.once('close', resolve))

  expect(exitCode, output).toBe(0)
  expect(output).not.toContain('"error"')
  expect(output).toMatch(/completed/)
})
