import { expect, it, onTestFinished } from 'vitest'
import { BROWSER_STEPS, FIRST_STEPS, stepsOf } from '../../support/documented-steps.ts'
import { removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { ShellSession } from '../../support/shell-session.ts'
import { launchChromium } from './support/chromium.ts'

it('the steps of the README and its guide connect an account by a link', { timeout: 120_000 }, async () => {
  const dataDir = temporaryDataDir()
  const product = await startProduct({ dataDir, environment: { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' } })
  const browser = await launchChromium()
  const shell = new ShellSession(
    { PATCHBAY_DATA_DIR: dataDir, PATCHBAY_PORT: String(product.port) },
    { 'localhost:8080': `127.0.0.1:${product.port}`, './.patchbay': dataDir },
  )
  onTestFinished(async () => {
    shell[Symbol.dispose]()
    await browser.close()
    await product.stop()
    removeDataDir(dataDir)
  })

  const [variables = ''] = stepsOf('README.md', FIRST_STEPS).join('\n').split('# 0. ')
  const [before = '', after = ''] = stepsOf('README.md', BROWSER_STEPS.chapter)
  const opened = await shell.run(`trap 'kill $PROVIDER_PID' EXIT\n${variables}${before}`)
  expect(opened.exitCode, opened.output).toBe(0)
  const [url = ''] = /http:\S+link_token=\S+/.exec(opened.output) ?? []
  const page = await browser.newPage({ locale: 'en-GB' })
  await page.goto(url)
  await page.getByRole('button', { name: /^Continue to / }).click()
  await page.getByRole('button', { name: 'Allow' }).click()
  await page.getByRole('heading', { name: 'Acme CRM is connected' }).waitFor()

  const connected = await shell.run(after)
  expect(connected.exitCode, connected.output).toBe(0)
  expect(connected.output).toContain('"status":"completed"')
  expect(connected.output).toContain('Workspace 5')
  expect(connected.output).not.toContain('Workspace 6')

  const guide = await shell.run(stepsOf(BROWSER_STEPS.guide).join('\n'))
  expect(guide.exitCode, guide.output).toBe(0)
  expect(guide.output).not.toContain('"error"')
  expect(guide.output).toContain('"display_name":"Acme"')
  expect(guide.output).toMatch(/"catalog_entries":\[\{[^[]*"label":"GitHub"/)
  expect(guide.output).toContain('"tos_link":"https://acme.example.com/terms/2026-11"')
})
