import { readFileSync } from 'node:fs'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, expect, inject, type ProvidedContext } from 'vitest'
import { callRest, expectJson, type JsonAnswer } from '../../../support/rest.ts'
import { startHost } from '../peers/host.ts'
import type { Peer, ReceivedRequest } from '../peers/listen.ts'
import { CLIENT, type Profile, type Provider, RIGHT_KEY, startProvider, WRONG_KEY } from '../peers/provider.ts'
import { launchChromium } from './chromium.ts'
import { definitionOf } from './definitions.ts'
import { type Canary, findCanaries, Observer } from './observer.ts'

/** A link as the creation answers it. */
export interface Link {
  readonly id: string
  readonly link_token: string
  readonly url: string
}

/** How a catalogue lists an integration, and the variables of its override. */
interface Listing {
  readonly category?: string
  readonly isBeta?: boolean
  readonly description?: string
  readonly tags?: readonly string[]
  readonly environment_variables?: Readonly<Record<string, string>>
}

/** Where a test file needs another product than the others, and a browser that finds the same hosts. */
interface Setting {
  readonly product: ProvidedContext['product']
  readonly browserArgs: readonly string[]
  /** Requests of third parties of its own. */
  readonly received: readonly ReceivedRequest[]
}

/** A team and environment of its own, its third party and its application, and a browser. */
export interface World {
  readonly productUrl: string
  readonly environmentToken: string
  readonly provider: Provider
  readonly host: Peer
  readonly browser: Browser
  readonly observer: Observer
  readonly canaries: Canary[]
  /** A call with the environment's token that must succeed. */
  call(method: string, path: string, body?: object): Promise<JsonAnswer>
  /** Sets name, logo and colour of the environment's pages. */
  setBranding(branding: object): Promise<void>
  /** Sets the terms of service of the environment's team; empty: none. */
  setTerms(url: string): Promise<void>
  /** Installs a definition once. @returns the name of the integration */
  install(name: string, definition: object, listing?: Listing): Promise<string>
  /** Installs a profile of the provider. @returns the name of the integration */
  installProfile(profile: Profile): Promise<string>
  /** A link for a new account of an integration, unless the body says otherwise. */
  createLink(body: object): Promise<Link>
  getLink(id: string): Promise<JsonAnswer>
  /** A page in a browser profile of its own. */
  newPage(options?: BrowserContextOptions): Promise<Page>
}

/** Sets up what a test file needs, and checks at its end that no secret was seen anywhere. Call at the top of a file. */
export async function createWorld(setting?: Setting): Promise<World> {
  const stack = new AsyncDisposableStack()
  const product = setting?.product ?? inject('product')
  const provider = stack.use(await startProvider())
  const host = stack.use(await startHost(product.url))
  const browser = await launchChromium(setting?.browserArgs)
  stack.defer(() => browser.close())
  const observer = new Observer(product.url)
  const canaries: Canary[] = [
    { kind: 'client secret', value: CLIENT.secret },
    { kind: 'form password', value: RIGHT_KEY },
    { kind: 'form password', value: WRONG_KEY },
  ]
  const team = await createTeam(product.url, product.teamToken)
  const environment = await createEnvironment(product.url, team.token)
  const call: World['call'] = (method, path, body) =>
    expectJson(method, `${product.url}${path}`, environment.token, body)
  const installed = new Map<string, Promise<string>>()
  const installNew = async (name: string, definition: object, listing: Listing): Promise<string> => {
    const { category = '', isBeta: is_beta = false, ...override } = listing
    const body = { name, config: definition, category, is_beta }
    const integration = await expectJson('POST', `${product.url}/integration`, team.token, body)
    const installation = { integration_id: integration.id, show_in_catalog: true, override }
    await call('POST', '/environment-integration', installation)
    return name
  }
  const world: World = {
    productUrl: product.url,
    environmentToken: environment.token,
    provider,
    host,
    browser,
    observer,
    canaries,
    call,
    async setBranding(branding) {
      await expectJson('PATCH', `${product.url}/environment/${environment.id}`, team.token, { branding })
    },
    async setTerms(tos_link) {
      await expectJson('PATCH', `${product.url}/team/${team.id}`, team.token, { tos_link })
    },
    install(name, definition, listing = {}) {
      const known = installed.get(name) ?? installNew(name, definition, listing)
      installed.set(name, known)
      return known
    },
    installProfile: (profile) => world.install(`acme-${profile}`, definitionOf(profile, provider.url)),
    async createLink(body) {
      const subject = 'integrated_account_id' in body ? {} : { tenant_id: 'tenant' }
      const link = await call('POST', '/link-token', { ...subject, origins: [host.url], ...body })
      canaries.push({ kind: 'link token', value: link.link_token })
      return { id: link.id, link_token: link.link_token, url: link.url }
    },
    getLink: (id) => call('GET', `/link-token/${id}`),
    newPage: async (options) => await (await newContext(browser, observer, options)).newPage(),
  }
  afterAll(async () => {
    for (const context of browser.contexts()) for (const page of context.pages()) await observer.look(page)
    const { logFile } = product
    const states = observer.urls.flatMap((url) => new URL(url).searchParams.getAll('state'))
    const all = [...canaries, ...provider.secrets, ...[...new Set(states)].map((value) => ({ kind: 'state', value }))]
    const received = [...provider.requests, ...host.requests, ...(setting?.received ?? [])]
    await stack.disposeAsync()
    assertNone(findCanaries(observer, { productUrl: product.url, canaries: all, received, logFile }))
    assertNone(observer.problems)
    assertNone(serverErrors(readFileSync(logFile, 'utf8')))
  })
  return world
}

/** The message names each finding, of which an assertion about a list prints only the number. */
function assertNone(findings: readonly string[]): void {
  expect(findings, findings.join('\n')).toEqual([])
}

/** Log lines of level error and above: a customer's mistake is none. */
function serverErrors(log: string): string[] {
  return log.split('\n').filter((line) => /"level":"?(?:error|fatal|[56]0)/.test(line))
}

async function newContext(
  browser: Browser,
  observer: Observer,
  options: BrowserContextOptions | undefined,
): Promise<BrowserContext> {
  const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'UTC', ...options })
  context.setDefaultTimeout(60_000)
  await observer.watch(context)
  return context
}

async function createTeam(
  url: string,
  operatorToken: string,
): Promise<{ readonly id: string; readonly token: string }> {
  const name = `browser-${crypto.randomUUID().slice(0, 8)}`
  const { id } = await expectJson('POST', `${url}/team`, operatorToken, { name })
  const { token } = await expectJson('POST', `${url}/api-token`, operatorToken, {
    kind: 'team',
    name,
    preset: 'full',
    team_id: id,
  })
  return { id, token }
}

async function createEnvironment(
  url: string,
  teamToken: string,
): Promise<{ readonly id: string; readonly token: string }> {
  const name = `browser-${crypto.randomUUID().slice(0, 8)}`
  const environment = await expectJson('POST', `${url}/environment`, teamToken, { name })
  const answer = await callRest('POST', `${url}/api-token`, teamToken, {
    kind: 'environment',
    name,
    preset: 'full',
    environment_id: environment.id,
  })
  if (answer.status !== 200) throw new Error(`no token: ${JSON.stringify(answer.body)}`)
  return { id: environment.id, token: answer.body.token }
}
