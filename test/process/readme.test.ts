import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { bareEnvironment, freePort, removeDataDir, startProduct, temporaryDataDir } from '../support/product.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The first commands of a chapter of the README, as they are written there. */
function commandsOf(chapter: string): string {
  const [, section = ''] = readFileSync(join(ROOT, 'README.md'), 'utf8').split(`\n## ${chapter}\n`)
  return /```sh\n([\s\S]*?)```/.exec(section)?.[1] ?? ''
}

/** Runs the commands of a chapter against a new start of the product. @param background the process that they start */
async function runChapter(chapter: string, background: string, more: Readonly<Record<string, string>> = {}) {
  const dataDir = temporaryDataDir()
  const product = await startProduct({ dataDir, environment: { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' } })
  onTestFinished(async () => {
    await product.stop()
    removeDataDir(dataDir)
  })
  const replaced = { 'localhost:8080': `127.0.0.1:${product.port}`, './.patchbay': dataDir, ...more }
  const script = Object.entries(replaced).reduce((text, [from, to]) => text.replaceAll(from, to), commandsOf(chapter))
  const environment = { PATCHBAY_DATA_DIR: dataDir, PATCHBAY_PORT: String(product.port) }
  const shell = spawn('bash', ['-euo', 'pipefail', '-c', `trap 'kill $${background} || true' EXIT\n${script}`], {
    cwd: ROOT,
    env: { ...bareEnvironment(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const exitCode = await new Promise<number | null>((resolve) => shell.once('close', resolve))
  return { exitCode, output, script }
}

it('the steps of the README work in order against the local GitHub', { timeout: 120_000 }, async () => {
  const { exitCode, output, script } = await runChapter('A call, and a run', 'STAND_IN_PID')
  expect(script).toContain('eval "$(npm run -s github-stand-in)"')
  expect(exitCode, output).toBe(0)
  expect(output).not.toContain('"error"')
  expect(output).toMatch(/completed/)
})

it('a signed request of a third party reaches the receiver by the steps of the README', {
  timeout: 120_000,
}, async () => {
  const ports = { '9000': String(await freePort()) }
  const { exitCode, output } = await runChapter('Webhooks of third parties', 'RECEIVER_PID', ports)
  expect(exitCode, output).toBe(0)
  expect(output.match(/^HTTP\/1.1 200/gm), output).toHaveLength(2)
  expect(output).toContain('"event":"record:created"')
  expect(output).toMatch(/"state":"processed".*"state":"routed"|"state":"routed".*"state":"processed"/)
  expect(output).toContain('"state":"delivered"')
})
