import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { bareEnvironment, removeDataDir, startProduct, temporaryDataDir } from '../support/product.ts'
import { launchChromium } from './support/chromium.ts'
import { until } from './support/until.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The commands of the README's section "An account by a link": before the start, before and after the browser. */
function steps(): readonly string[] {
  const [, section = ''] = readFileSync(join(ROOT, 'README.md'), 'utf8').split('\n## An account by a link\n')
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].slice(0, 3).map(([, block = '']) => block)
}

it('the steps of the README connect an account by a link', { timeout: 120_000 }, async () => {
  const dataDir = temporaryDataDir()
  const product = await startProduct({ dataDir, environment: { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' } })
  const environment = { PATCHBAY_DATA_DIR: dataDir, PATCHBAY_PORT: String(product.port) }
  const shell = spawn('bash', ['-euo', 'pipefail'], { cwd: ROOT, env: { ...bareEnvironment(), ...environment } })
  const browser = await launchChromium()
  onTestFinished(async () => {
    await browser.close()
    await product.stop()
    removeDataDir(dataDir)
  })
  let output = ''
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const ended = new Promise<number | null>((resolve) => shell.once('close', resolve))
  const run = (text: string): void => {
    shell.stdin.write(text.replaceAll('localhost:8080', `127.0.0.1:${product.port}`).replaceAll('./.patchbay', dataDir))
  }

  const [start = '', before = '', after = ''] = steps()
  expect(start).toContain('PATCHBAY_EGRESS_ALLOW=127.0.0.0/8 npm start')
  run(`trap 'kill $PROVIDER_PID' EXIT\n${before}`)
  const url = await until('the link', () => /http:\S+link_token=\S+/.exec(output)?.[0])
  const page = await browser.newPage({ locale: 'en-GB' })
  await page.goto(url)
  await page.getByRole('button', { name: /^Continue to / }).click()
  await page.getByRole('button', { name: 'Allow' }).click()
  await page.getByRole('heading', { name: 'Acme CRM is connected' }).waitFor()
  run(`${after}exit\n`)

  expect(await ended, output).toBe(0)
  expect(output).toContain('"status":"completed"')
  expect(output).toContain('Workspace 5')
  expect(output).not.toContain('Workspace 6')
})
