import { readFileSync } from 'node:fs'
import type { BrowserContext, Page } from 'playwright-core'
import { SECRET_ENCODINGS } from '../../../support/secret-encodings.ts'
import type { ReceivedRequest } from '../peers/listen.ts'
import { within } from './until.ts'

/** A value that must not appear, and what it is. */
export interface Canary {
  readonly kind: string
  readonly value: string
}

/** Everything that browsers showed or sent where others could read it. */
export class Observer {
  /** Addresses that the browser requested, each with the page that did. */
  readonly urls: string[] = []
  /** Messages that arrived at windows of applications, as JSON. */
  readonly messages: string[] = []
  /** Documents of the product as HTML, by address. */
  readonly documents: { readonly url: string; readonly html: string }[] = []
  /** Uncaught errors, and violations of a Content-Security-Policy. */
  readonly problems: string[] = []
  readonly #productUrl: string

  constructor(productUrl: string) {
    this.#productUrl = productUrl
  }

  /** Records from now on what happens in a browser context. */
  async watch(context: BrowserContext): Promise<void> {
    context.on('request', (request) => this.urls.push(request.url()))
    context.on('weberror', (error) => this.problems.push(`${error.page()?.url()}: ${error.error().message}`))
    context.on('console', (message) => {
      const text = message.text()
      if (/Content.Security.Policy|Refused to|violates/i.test(text))
        this.problems.push(`${message.location().url}: ${text}`)
    })
    context.on('page', (page) => this.#watchPage(page))
    await context.exposeBinding('recordMessage', ({ page }, text: string) => {
      if (!page.url().startsWith(this.#productUrl)) this.messages.push(text)
    })
    await context.addInitScript(() => {
      const record = Reflect.get(window, 'recordMessage') as (text: string) => void
      if (window === window.top) addEventListener('message', (event) => record(JSON.stringify(event.data) ?? ''))
    })
  }

  /** Stores the documents of the product in a page as they are now. */
  async look(page: Page): Promise<void> {
    for (const frame of page.frames()) {
      const url = frame.url()
      if (!url.startsWith(this.#productUrl)) continue
      // A document that is being left cannot be read any more, or is another one by then; reading it may never end.
      const html = await within(
        5_000,
        frame.content().catch(() => undefined),
      )
      if (html !== undefined && frame.url() === url) this.documents.push({ url, html })
    }
  }

  #watchPage(page: Page): void {
    page.on('load', () => this.look(page))
    page.on('framenavigated', () => this.look(page))
  }
}

/** Where the protocol itself puts a secret into an address: the hosted link, the redirect to the third party and back. */
function isCarrier(url: string, kind: string, productUrl: string): boolean {
  const { origin, pathname } = new URL(url)
  if (kind === 'link token') return origin === productUrl && pathname === '/connect'
  if (kind === 'code') return origin === productUrl && pathname === '/connect/callback'
  if (kind === 'state') return /\/auth(orize)?$/.test(pathname) || pathname === '/connect/callback'
  return false
}

/** A document without what a page on the way must hold: the state in the third party's address, or the callback to post again. */
function withoutCarried(html: string, url: string): string {
  if (new URL(url).pathname === '/connect/callback')
    return html.replace(/<input type="hidden" name="(?:code|state)" value="[^"]*">/g, '')
  const address = / data-continue="([^"]+)"/.exec(html)?.[1]
  if (address === undefined) return html
  return html.replaceAll(`"${address}"`, () => `"${address.replace(/\bstate=[^&]*/, '')}"`)
}

/** @returns one line per canary found in what was observed, in any usual encoding */
export function findCanaries(
  observer: Observer,
  context: {
    readonly productUrl: string
    readonly canaries: readonly Canary[]
    readonly received: readonly ReceivedRequest[]
    readonly logFile: string
  },
): string[] {
  const { productUrl, canaries, received, logFile } = context
  const places: { readonly name: string; readonly text: string; readonly url?: string }[] = [
    ...observer.urls.map((url) => ({ name: `address ${withoutQuery(url)}`, text: url, url })),
    ...received.map(({ url, referer }) => ({ name: `referrer of ${withoutQuery(url)}`, text: referrerOf(referer) })),
    ...observer.messages.map((text) => ({ name: 'message', text })),
    ...observer.documents.map(({ url, html }) => ({
      name: `document ${withoutQuery(url)}`,
      text: withoutCarried(html, url),
    })),
    { name: 'log', text: readFileSync(logFile, 'utf8') },
  ]
  /** Pages of a third party name each other; what they say about the product is what counts. */
  function referrerOf(referer: string | undefined): string {
    return referer?.startsWith(productUrl) ? referer : ''
  }
  return canaries.flatMap(({ kind, value }) => {
    const forms = new Set(Object.values(SECRET_ENCODINGS).map((encode) => encode(value)))
    const found = places.filter(({ text, url }) => {
      if (url !== undefined && isCarrier(url, kind, productUrl)) return false
      return [...forms].some((form) => text.includes(form))
    })
    return [...new Set(found.map(({ name }) => `${kind} in ${name}`))]
  })
}

function withoutQuery(url: string): string {
  return url.replace(/\?.*/s, '')
}
