import type { BrowserContextOptions, Frame, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { SeenByHost } from './peers/host.ts'
import { RIGHT_KEY } from './peers/provider.ts'
import { closeContext } from './support/chromium.ts'
import { keyDefinition, settingsDefinition } from './support/definitions.ts'
import { allow, fillKeyForm, goToConsent, submitKeyForm, untilConnected } from './support/steps.ts'
import { until } from './support/until.ts'
import { createWorld, type Link } from './support/world.ts'

const world = await createWorld()
const keys = await world.install('acme-keys', keyDefinition(world.provider.url))
const settings = await world.install('acme-settings', settingsDefinition(world.provider.url))

/** The application with a link in its options. */
async function openApplication(
  body: object,
  options: Record<string, unknown>,
  { path = '/', context = {} }: { path?: string; context?: BrowserContextOptions } = {},
): Promise<{ readonly link: Link; readonly application: Page }> {
  const link = await world.createLink(body)
  const application = await world.newPage(context)
  await application.goto(`${world.host.url}${path}`)
  await application.locator('html[data-ready]').waitFor()
  await application.evaluate(
    (given) => {
      window.options = given
    },
    { token: link.link_token, ...options },
  )
  return { link, application }
}

async function settled(application: Page): Promise<SeenByHost> {
  await application.waitForFunction(() => 'result' in window.seen || 'error' in window.seen)
  return await application.evaluate(() => window.seen)
}

async function resultOf(link: Link) {
  const { status, integration, integrated_account_id } = await world.getLink(link.id)
  return { status, integration, integrated_account_id }
}

/** A click that opens a window. */
async function clickForWindow(application: Page, click: () => Promise<void>): Promise<Page> {
  const [opened] = await Promise.all([application.context().waitForEvent('page'), click()])
  return opened
}

async function frameOf(application: Page): Promise<Frame> {
  const frame = await (await application.waitForSelector('iframe')).contentFrame()
  if (frame === null) throw new Error('no frame')
  return frame
}

describe.concurrent('an application on another site connects an account', () => {
  it.each([
    ['in a popup', 'plain', '/'],
    ['in a popup that the provider severs', 'coop', '/'],
    ['in a popup that the application severs', 'plain', '/?coop=same-origin'],
    ['in a popup, by a form posted from the provider', 'form-post', '/'],
  ] as const)('%s', async (_how, profile, path) => {
    const integrations = [await world.installProfile(profile)]
    const { link, application } = await openApplication({ integrations }, {}, { path })
    const popup = await clickForWindow(application, () => application.click('#connect'))
    await goToConsent(popup)
    await allow(popup)
    const after = await settled(application)
    expect(after.result).toEqual(await resultOf(link))
    expect(after.result).toMatchObject({ status: 'completed', integration: integrations[0] })
    if (profile === 'plain' && path === '/') await until('the popup to close', () => popup.isClosed())
    await closeContext(application.context())
  })

  it('in a frame, with the consent in a popup of its own', async () => {
    const integrations = [await world.installProfile('plain')]
    const { link, application } = await openApplication({ integrations }, { mode: 'iframe' })
    await application.click('#connect')
    const frame = await frameOf(application)
    const consent = await clickForWindow(application, () =>
      frame.getByRole('button', { name: /^Continue to / }).click(),
    )
    await allow(consent)
    const after = await settled(application)
    expect(after.result).toEqual(await resultOf(link))
    expect(await application.locator('iframe').count()).toBe(0)
    await closeContext(application.context())
  })

  it('in a frame whose popup the browser blocks, by a link to the consent', async () => {
    const integrations = [await world.installProfile('plain')]
    const { link, application } = await openApplication({ integrations }, { mode: 'iframe' })
    await application.addInitScript(() => {
      if (window !== window.top) window.open = () => null
    })
    await application.click('#connect')
    const frame = await frameOf(application)
    await frame.getByRole('button', { name: /^Continue to / }).click()
    const blocked = frame.getByRole('link', { name: /new tab/ })
    await blocked.waitFor()
    const consent = await clickForWindow(application, () => blocked.click())
    await allow(consent)
    expect((await settled(application)).result).toEqual(await resultOf(link))
    await closeContext(application.context())
  })

  it('in a frame, with the form after the connection', async () => {
    const { link, application } = await openApplication({ integrations: [settings] }, { mode: 'iframe' })
    await application.click('#connect')
    const frame = await frameOf(application)
    const consent = await clickForWindow(application, () =>
      frame.getByRole('button', { name: /^Continue to / }).click(),
    )
    await allow(consent)
    await frame.getByRole('radio', { name: 'Workspace 3', exact: true }).check()
    await frame.getByRole('checkbox', { name: 'Project 2 of w3' }).check()
    await frame.getByRole('button', { name: 'Save and finish' }).click()
    expect((await settled(application)).result).toEqual(await resultOf(link))
    await closeContext(application.context())
  })

  it('in a frame, with a key', async () => {
    const { link, application } = await openApplication({ integrations: [keys] }, { mode: 'iframe', inline: true })
    await application.click('#connect')
    const frame = await frameOf(application)
    await fillKeyForm(frame, RIGHT_KEY)
    await submitKeyForm(frame)
    expect((await settled(application)).result).toEqual(await resultOf(link))
    await closeContext(application.context())
  })

  it('in the same tab', async () => {
    const redirect_uri = `${world.host.url}/return`
    const { link, application } = await openApplication({ integrations: [keys], redirect_uri }, { mode: 'redirect' })
    await application.click('#connect')
    await fillKeyForm(application, RIGHT_KEY)
    await submitKeyForm(application)
    await application.waitForURL(`${redirect_uri}**`)
    expect((await settled(application)).result).toEqual(await resultOf(link))
    expect(application.url()).toBe(redirect_uri)
    await closeContext(application.context())
  })

  it('by the link of the error after a blocked popup', async () => {
    const link = await world.createLink({ integrations: [keys] })
    const application = await world.newPage()
    const options = encodeURIComponent(JSON.stringify({ token: link.link_token }))
    await application.goto(`${world.host.url}/#${options}`)
    const { error } = await settled(application)
    expect(error?.code).toBe('popup_blocked')
    await application.goto(error?.fallbackUrl ?? '')
    await fillKeyForm(application, RIGHT_KEY)
    await submitKeyForm(application)
    await untilConnected(application, 'Acme Keys')
    await closeContext(application.context())
  })
})

describe.concurrent('an application', () => {
  it('that the link does not list gets no answer and no frame', async () => {
    const origins = ['https://elsewhere.example']
    const { application } = await openApplication({ integrations: [keys], origins }, { mode: 'iframe' })
    await application.click('#connect')
    expect((await settled(application)).error?.code).toBe('origin_not_allowed')
    const blocked = world.observer.problems.splice(0)
    expect(blocked.filter((text) => !text.includes('frame-ancestors https://elsewhere.example'))).toEqual([])
    await closeContext(application.context())
  })

  it('learns of a denied consent as a step, and of the cancellation as the end', async () => {
    const integrations = [await world.installProfile('plain')]
    const { application } = await openApplication({ integrations }, {})
    const popup = await clickForWindow(application, () => application.click('#connect'))
    await goToConsent(popup)
    await popup.getByRole('button', { name: 'Deny' }).click()
    await application.waitForFunction(() => window.seen.events.some(({ code }) => code === 'consent_denied'))
    await popup.getByRole('button', { name: 'Cancel' }).click()
    expect((await settled(application)).error?.code).toBe('cancelled')
    await closeContext(application.context())
  })
})
