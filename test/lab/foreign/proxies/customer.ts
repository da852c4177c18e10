import { deepEqual, equal } from 'node:assert/strict'
import type { Browser, BrowserContext, Frame, Page } from 'playwright-core'
import type { JsonAnswer } from '../../../support/rest.ts'
import { startHost } from '../../browser/peers/host.ts'
import type { Peer } from '../../browser/peers/listen.ts'
import { RIGHT_KEY, startProvider } from '../../browser/peers/provider.ts'
import { launchChromium } from '../../browser/support/chromium.ts'
import { definitionOf, keyDefinition } from '../../browser/support/definitions.ts'
import { allow, fillKeyForm, goToConsent, submitKeyForm, untilConnected } from '../../browser/support/steps.ts'
import { directly, type Installation } from './installation.ts'

const KEYS = 'behind-keys'
const CONSENT = 'behind-consent'
const STEP_MS = 15_000

/** A customer in Chromium, who connects accounts by the public address. */
export interface Customer extends AsyncDisposable {
  /** Connects an account in each way that is given. @returns how many requests the pages made */
  connect(ways: readonly Way[]): Promise<string>
}

/** Starts Chromium, a third party with a consent page, and an application with the connect client. */
export async function startCustomer({ plain, publicUrl, authority }: Installation): Promise<Customer> {
  const stack = new AsyncDisposableStack()
  const provider = stack.use(await startProvider('127.0.0.1'))
  const host = stack.use(await startHost(publicUrl))
  const browser = await launchChromium([`--ignore-certificate-errors-spki-list=${authority.serverKeyHash}`])
  stack.defer(() => browser.close())
  const call = directly(plain)
  const { team_token: teamToken, environment_token: token } = plain.bootstrap
  for (const [name, config] of [
    [KEYS, keyDefinition(provider.url)],
    [CONSENT, definitionOf('plain', provider.url)],
  ] as const) {
    const { id } = await call('POST', '/integration', teamToken, { name, config })
    await call('POST', '/environment-integration', token, { integration_id: id, show_in_catalog: true })
  }
  const world: World = {
    host,
    async open(integration, also = {}) {
      const body = { tenant_id: 'tenant', origins: [host.url], integrations: [integration], ...also }
      const link = await call('POST', '/link-token', token, body)
      return { url: link.url, token: link.link_token, status: () => call('GET', `/link-token/${link.id}`, token) }
    },
  }
  return {
    async connect(ways) {
      const seen = new Seen(publicUrl)
      const connectBy = async (way: Way) => {
        const context = await newContext(browser, seen)
        await way(world, await context.newPage())
        await context.close()
      }
      await Promise.all(ways.map(connectBy))
      deepEqual(seen.problems, [])
      return `${ways.length} accounts, ${seen.requests} requests`
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

interface Link {
  readonly url: string
  readonly token: string
  status(): Promise<JsonAnswer>
}

interface World {
  readonly host: Peer
  open(integration: string, also?: object): Promise<Link>
}

/** What the pages of the product did. */
class Seen {
  readonly problems: string[] = []
  requests = 0
  readonly #publicUrl: URL

  constructor(publicUrl: string) {
    this.#publicUrl = new URL(publicUrl)
  }

  /** Every request of a page to the product is below the path of its address, and is answered. */
  answered(address: string, status: number): void {
    const url = new URL(address)
    if (url.origin !== this.#publicUrl.origin) return
    this.requests++
    if (!url.pathname.startsWith(`${this.#publicUrl.pathname}/`) || status >= 400)
      this.problems.push(`${status} ${url.pathname}`)
  }

  said(text: string, address: string): void {
    if (
      address.startsWith(this.#publicUrl.origin) &&
      /Content.Security.Policy|Refused to|violates|Failed to load/i.test(text)
    )
      this.problems.push(`${address}: ${text}`)
  }
}

async function newContext(browser: Browser, seen: Seen): Promise<BrowserContext> {
  const context = await browser.newContext({ locale: 'en-GB' })
  context.setDefaultTimeout(STEP_MS)
  context.on('response', (response) => seen.answered(response.url(), response.status()))
  context.on('console', (message) => seen.said(message.text(), message.location().url))
  context.on('weberror', (error) => seen.problems.push(error.error().message))
  return context
}

/** How a customer connects an account. */
export type Way = (world: World, page: Page) => Promise<void>

/** The link itself: a form, and a consent. */
export const LINK_WAYS: readonly Way[] = [
  async ({ open }, page) => {
    const link = await open(KEYS)
    await page.goto(link.url)
    await fillKeyForm(page, 'wrong key')
    await submitKeyForm(page)
    await page.getByRole('alert').waitFor()
    await fillKeyForm(page, RIGHT_KEY)
    await submitKeyForm(page)
    await untilConnected(page, 'Acme Keys')
    equal((await link.status()).status, 'completed')
  },
  async ({ open }, page) => {
    const link = await open(CONSENT)
    await page.goto(link.url)
    await goToConsent(page)
    await allow(page)
    await untilConnected(page)
    equal((await link.status()).status, 'completed')
  },
]

/** Each mode of the connect client: popup, frame, redirect. */
export const CLIENT_WAYS: readonly Way[] = [
  async (world, page) => {
    const link = await world.open(CONSENT)
    await openApplication(world, page, { token: link.token })
    const popup = await clickForWindow(page, () => page.click('#connect'))
    await goToConsent(popup)
    await allow(popup)
    await settled(page, link)
  },
  async (world, page) => {
    const link = await world.open(CONSENT)
    await openApplication(world, page, { token: link.token, mode: 'iframe' })
    await page.click('#connect')
    const frame = await frameOf(page)
    const consent = await clickForWindow(page, () => frame.getByRole('button', { name: /^Continue to / }).click())
    await allow(consent)
    await settled(page, link)
  },
  async (world, page) => {
    const link = await world.open(KEYS, { redirect_uri: `${world.host.url}/return` })
    await openApplication(world, page, { token: link.token, mode: 'redirect' })
    await page.click('#connect')
    await fillKeyForm(page, RIGHT_KEY)
    await submitKeyForm(page)
    await page.waitForURL(`${world.host.url}/return**`)
    await settled(page, link)
  },
]

async function openApplication({ host }: World, page: Page, options: object): Promise<void> {
  await page.goto(host.url)
  await page.locator('html[data-ready]').waitFor()
  await page.evaluate(`window.options = ${JSON.stringify(options)}`)
}

async function settled(page: Page, link: Link): Promise<void> {
  const seen = await page.waitForFunction(() => {
    const found = Reflect.get(globalThis, 'seen') as { result?: { readonly status?: string }; error?: object }
    return (found.result ?? found.error) && { status: found.result?.status, error: JSON.stringify(found.error) }
  })
  const { status, error } = (await seen.jsonValue()) ?? {}
  equal(status, 'completed', error)
  equal((await link.status()).status, 'completed')
}

async function clickForWindow(page: Page, click: () => Promise<void>): Promise<Page> {
  const [opened] = await Promise.all([page.context().waitForEvent('page'), click()])
  return opened
}

async function frameOf(page: Page): Promise<Frame> {
  const frame = await (await page.waitForSelector('iframe')).contentFrame()
  if (frame === null) throw new Error('no frame')
  return frame
}
