import type { Frame, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { RIGHT_KEY } from './peers/provider.ts'
import { findAccessibilityProblems } from './support/accessibility.ts'
import { closeContext } from './support/chromium.ts'
import { keyDefinition } from './support/definitions.ts'
import { compareScreenshots } from './support/screenshots.ts'
import { createStates } from './support/states.ts'
import { fillKeyForm } from './support/steps.ts'
import { createWorld } from './support/world.ts'

const NARROWEST_PX = 320

const world = await createWorld()
const states = await createStates(world)
const comparer = await world.browser.newPage()

/** Compares the pictures of a page, and has axe-core look at it and its frames in each of them. */
async function checkAppearance(page: Page, name: string, places: readonly (Page | Frame)[]): Promise<void> {
  const findings: string[] = []
  const differences = await compareScreenshots(comparer, page, name, async (variant) => {
    for (const place of places)
      for (const problem of await findAccessibilityProblems(place)) findings.push(`${variant}: ${problem}`)
  })
  expect(findings).toEqual([])
  expect(differences).toEqual([])
}

describe('every step and error state looks as it should, is accessible and fits a narrow screen', () => {
  it.each(states)('$name', async ({ name, title, link: body, reach, leave }) => {
    const link = await world.createLink({ locale: 'en', ...body })
    const page = await world.newPage()
    await page.goto(link.url)
    try {
      await reach?.(page, link)
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
      await checkAppearance(page, name, [page])
      await page.setViewportSize({ width: NARROWEST_PX, height: 640 })
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      expect(width).toBeLessThanOrEqual(NARROWEST_PX)
    } finally {
      leave?.()
    }
    await closeContext(page.context())
  })
})

describe('with the branding of an environment', () => {
  it.each([
    ['branded', '#ffd500'],
    ['branded-dark', '#2b0a3d'],
  ])('%s: the colour %s is readable', async (name, accent_color) => {
    const logo_url = `${world.provider.url}/plain/logo.svg`
    await world.setBranding({ display_name: 'Northwind Traders', accent_color, logo_url })
    const link = await world.createLink({ integrations: [await world.installProfile('plain')] })
    const page = await world.newPage()
    await page.goto(link.url)
    await page.getByText('Northwind Traders').first().waitFor()
    await page.locator('img.logo').first().waitFor()
    await checkAppearance(page, name, [page])
    await closeContext(page.context())
    await world.setBranding({ display_name: '', accent_color: '', logo_url: '' })
  })
})

describe('with terms of service', () => {
  const TERMS = `${world.provider.url}/terms`

  it.each([
    ['terms', 'en', 'Continue to Acme CRM', 'plain'],
    ['terms-de', 'de', 'Verbinden', 'keys'],
  ])('%s: the box is accessible, and what is missing is said', async (name, locale, submit, kind) => {
    await world.setTerms(TERMS)
    await world.setBranding({ display_name: 'Northwind Traders' })
    const keys = () => world.install('acme-keys', keyDefinition(world.provider.url))
    const integration = kind === 'plain' ? await world.installProfile('plain') : await keys()
    const link = await world.createLink({ integrations: [integration], locale })
    const page = await world.newPage()
    await page.goto(link.url)
    await page.getByRole('button', { name: submit }).click()
    await page.getByRole('alert').waitFor()
    await checkAppearance(page, name, [page])
    await closeContext(page.context())
    await world.setBranding({ display_name: '' })
    await world.setTerms('')
  })
})

describe('in a frame of an application', () => {
  it('the dialog and its question are accessible', async () => {
    const integrations = [await world.install('acme-keys', {})]
    const link = await world.createLink({ integrations })
    const application = await world.newPage()
    await application.goto(world.host.url)
    await application.locator('html[data-ready]').waitFor()
    await application.evaluate(
      (given) => {
        window.options = given
      },
      { token: link.link_token, mode: 'iframe' },
    )
    await application.click('#connect')
    const frame = application.frameLocator('iframe')
    await frame.getByLabel('Subdomain').fill('acme')
    const place = application.frames().find((each) => each.url().includes('/connect/frame/'))
    if (place === undefined) throw new Error('no frame')
    await fillKeyForm(place, RIGHT_KEY)
    await application.getByRole('button', { name: 'Close' }).click()
    await application.getByRole('alertdialog').waitFor()
    await checkAppearance(application, 'dialog', [application, place])
    await closeContext(application.context())
  })
})
