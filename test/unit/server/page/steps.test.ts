import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { Json } from '../../../../src/foundation/json/index.ts'
import { startUpstream } from '../../../support/upstream.ts'
import { KEY_CONFIG, startConnectPage } from './fixture.ts'

const upstream = await startUpstream()
afterEach(() => upstream.verify())
afterAll(() => upstream[Symbol.asyncDispose]())

const { app, browser, install, link, account } = await startConnectPage({ PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' })

const OAUTH = {
  label: 'Sign in',
  config: {
    client: { id: 'id', secret: 'client-canary' },
    auth: { tokenHost: upstream.url, tokenPath: '/token', authorizeHost: upstream.url, authorizePath: '/authorize' },
    scope: ['read'],
  },
}
const keys = await install()
const both = await install({
  ...KEY_CONFIG,
  label: 'Both',
  credentials: { oauth2: OAUTH, ...(KEY_CONFIG.credentials as object) },
})
const login = await install({ ...KEY_CONFIG, label: 'Login', credentials: { oauth2: OAUTH } })

const form = { 'f.subdomain': 'acme', 'f.api_key': 'canary-key' }

async function openLink(input = {}) {
  const visitor = browser()
  const { id, url } = await link(input)
  return { visitor, id, page: await visitor.get(url) }
}

/** Values of the buttons of a choice. */
const choices = (html: string, name: string) =>
  [...html.matchAll(new RegExp(`name="${name}" value="([^"]+)"`, 'g'))].map(([, value]) => value ?? '')

/** The text of an attribute. */
const unescaped = (text: string) =>
  text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')

describe('choosing', () => {
  it('leads over integration and method to the form, and back by their addresses', async () => {
    const { visitor, id, page } = await openLink({ integrations: [keys, both] })
    expect(page.path).toBe(`/connect/${id}/integration`)
    const values = choices(page.html, 'integration')
    expect(values).toHaveLength(2)

    const method = await visitor.post(page.path, { integration: values[0] ?? '' })
    expect(method.path).toBe(`/connect/${id}/method`)
    expect(choices(method.html, 'method')).toEqual(['oauth2', 'api_key'])

    const fields = await visitor.post(method.path, { method: 'api_key' })
    expect(fields.path).toBe(`/connect/${id}/form`)
    expect(fields.html).toContain(`href="/connect/${id}/method"`)
    expect((await visitor.get(method.path)).path).toBe(method.path)

    const other = await visitor.post(page.path, { integration: values[1] ?? '' })
    expect(other.html).toContain('Connect Key &amp; Co')
  })

  it.each([
    ['integration', { integration: '01a204bd-d211-7677-bd6d-bcbe1e07087d' }],
    ['integration', { integration: 'x' }],
    ['integration', {}],
    ['method', { method: 'x' }],
    ['form', form],
    ['consent', {}],
    ['settings', {}],
    ['identity', {}],
  ])('nothing by the step %s with %j leaves the choice as it is', async (step, body) => {
    const { visitor, id, page } = await openLink({ integrations: [keys, both] })
    expect((await visitor.post(`/connect/${id}/${step}`, body as Record<string, string>)).path).toBe(page.path)
  })

  it('is left out where there is nothing to choose', async () => {
    const { visitor, id, page } = await openLink({ integrations: [keys] })
    expect(page.path).toBe(`/connect/${id}/form`)
    for (const step of ['integration', 'method', 'consent', 'progress', 'settings', 'done', 'x'])
      expect((await visitor.get(`/connect/${id}/${step}`)).path).toBe(page.path)
  })
})

describe('the form', () => {
  it('shows what is wrong with each field, what was entered, and no secret', async () => {
    const { visitor, page } = await openLink({ integrations: [keys] })
    const rejected = await visitor.post(page.path, { 'f.subdomain': 'a_b', 'f.api_key': '' })
    expect(rejected.status).toBe(422)
    expect(rejected.html).toContain('There are 2 problems with your entries')
    expect(rejected.html).toContain('<a href="#f-api_key">API key</a>: Enter a value.')
    expect(rejected.html).toMatch(/id="f-subdomain"[^>]* aria-invalid="true" aria-describedby="f-subdomain-problem"/)
    expect(rejected.html).toContain('value="a_b"')
  })

  it('that is sent twice leads to the same account', async () => {
    const { visitor, page, id } = await openLink({ integrations: [keys] })
    const [first, second] = [await visitor.post(page.path, form), await visitor.post(page.path, form)]
    expect([first.path, second.path]).toEqual([`/connect/${id}/done`, `/connect/${id}/done`])
    const ids = [first, second].map(({ html }) => /integrated_account_id&quot;:&quot;([\w-]+)/.exec(html)?.[1])
    expect(ids[0]).toBe(ids[1])
    expect(await account(ids[0] ?? '')).toMatchObject({ status: 'active' })
  })

  it('in German reports in German', async () => {
    const { visitor, page } = await openLink({ integrations: [keys], locale: 'de-CH' })
    const rejected = await visitor.post(page.path, {})
    expect(rejected.html).toContain('Mit Ihren Eingaben gibt es 2 Probleme')
    expect(rejected.html).toContain('<html lang="de"')
  })
})

describe('the consent', () => {
  it('is reached by a link, because a form may not lead to another site', async () => {
    const { visitor, page } = await openLink({ integrations: [login] })
    expect(page.html).toContain('<h1 tabindex="-1">Sign in at Login</h1>')
    const hop = await visitor.post(page.path, {})
    expect(hop.status).toBe(200)
    const address = /<a class="button primary" href="([^"]+)" rel="noreferrer"/.exec(hop.html)?.[1] ?? ''
    expect(address).toContain(`${upstream.url}/authorize?`)
    expect(hop.html).toContain(`data-continue="${address}"`)
  })

  it('names the scopes of the definition and of the link, and the test mode', async () => {
    const { page } = await openLink({ integrations: [login], scopes: ['write'], is_sandbox: true })
    expect(page.html).toContain('<ul><li><code>read</code></li><li><code>write</code></li></ul>')
    expect(page.html).toContain('<p class="note">Test mode: data at Login is only read, never changed.</p>')
    const usual = await openLink({ integrations: [login] })
    expect(usual.page.html).toContain('<ul><li><code>read</code></li></ul>')
    expect(usual.page.html).not.toContain('Test mode')
  })

  it('can be begun again, and shows the redirect address', async () => {
    const { visitor, page, id } = await openLink({ integrations: [login] })
    await visitor.post(page.path, {})
    const waiting = await visitor.get(`/connect/${id}`)
    expect(waiting.path).toBe(`/connect/${id}/consent`)
    expect(waiting.html).toContain(`${app.url}/connect/callback`)
    expect((await visitor.post(waiting.path, {})).html).toContain('data-continue="')
  })

  it('that was denied is explained, with what the third party said', async () => {
    const { visitor, page, id } = await openLink({ integrations: [login] })
    const hop = await visitor.post(page.path, {})
    const state = /state=([\w-]+)/.exec(hop.html)?.[1] ?? ''
    const query = new URLSearchParams({ state, error: 'access_denied', error_description: 'No <b>way</b>' })
    const back = await visitor.get(`/connect/callback?${query}`)
    expect(back.path).toBe(`/connect/${id}/form`)
    expect(back.html).toContain('Access was not allowed')
    expect(back.html).toContain('No &lt;b&gt;way&lt;/b&gt;')
  })

  it('that came back by a form of the third party is posted again from this origin', async () => {
    const { visitor, page, id } = await openLink({ integrations: [login] })
    const hop = await visitor.post(page.path, {})
    const state = /state=([\w-]+)/.exec(hop.html)?.[1] ?? ''
    const params = { state, error: 'access_denied', error_description: '"><script>' }
    const repost = await browser().post('/connect/callback', params, { 'sec-fetch-site': 'cross-site' })
    expect(repost.html).toContain('<form method="post" action="/connect/callback" data-submit>')
    expect(repost.html).toContain('value="&quot;&gt;&lt;script&gt;"')
    expect((await visitor.post('/connect/callback', params)).path).toBe(`/connect/${id}/form`)
  })

  it('keeps the cookie as long as the session, and for an hour before', async () => {
    const { visitor, page } = await openLink({ integrations: [login] })
    const secondsOf = (headers: Headers) => Number(/; Max-Age=(\d+)/.exec(headers.get('set-cookie') ?? '')?.[1])
    expect(secondsOf(page.headers)).toBe(3_600)
    expect(secondsOf((await visitor.post(page.path, {})).headers)).toBeGreaterThan(86_000)
  })

  it('of a frame is opened in a popup by a ticket that works once', async () => {
    const { id, link_token: token } = await link({ integrations: [login], origins: ['https://app.example.com'] })
    const { key, hop } = await openHop(id, token)
    const popup = await fetch(app.url + hop, { redirect: 'manual', headers: { 'sec-fetch-site': 'same-origin' } })
    expect(popup.status).toBe(303)
    expect(popup.headers.get('location')).toContain(`${upstream.url}/authorize?`)
    expect(popup.headers.getSetCookie()[0]).toContain(`patchbay-link-${id}=${key}.`)
    const again = await browser().get(hop)
    expect(again.status).toBe(410)
    expect(again.html).toContain('This window was opened too late')
  })

  it.each([
    [{ 'sec-fetch-site': 'cross-site' }],
    [{ 'sec-fetch-site': 'same-site' }],
    [{ 'sec-fetch-site': 'none' }],
    [{}],
  ])('is not opened by a ticket of a page with %j, which asks first', async (headers) => {
    const { id, link_token: token } = await link({ integrations: [login], origins: ['https://app.example.com'] })
    const { hop } = await openHop(id, token)
    const visitor = browser()
    const question = await visitor.get(hop, headers)
    expect(question.status).toBe(200)
    expect([...visitor.cookies]).toEqual([])
    expect(question.html).toContain('Continue to Login')
    expect(question.html).not.toContain('state=')
    const ticket = /name="ticket" value="([^"]+)"/.exec(question.html)?.[1] ?? ''
    const forged = await visitor.post('/connect/hop', { ticket }, { 'sec-fetch-site': 'cross-site' })
    expect([forged.status, visitor.cookies.size]).toEqual([403, 0])
    const answered = await visitor.post('/connect/hop', { ticket })
    expect(answered.html).toContain(`href="${upstream.url}/authorize?`)
    expect([...visitor.cookies.keys()]).toEqual([`patchbay-link-${id}`])
    expect((await visitor.post('/connect/hop', { ticket })).status).toBe(410)
  })

  /** The consent page of a session in a frame. */
  async function openHop(session: unknown, token: unknown) {
    const opened = await fetch(`${app.url}/connect/open`, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin' },
      body: JSON.stringify({ token, session }),
    })
    const { key } = (await opened.json()) as { key: string }
    const waiting = await browser().post(`/connect/${session}/form`, {}, { 'patchbay-link-key': key })
    expect(waiting.html).not.toContain('state=')
    return { key, hop: /data-popup="([^"]+)"/.exec(waiting.html)?.[1] ?? '' }
  }
})

describe('the settings', () => {
  const CHANNEL: Json = {
    name: 'channel',
    label: 'Channel',
    type: 'single_select',
    required: true,
    data_source: { resource: 'channels' },
    options: { value: 'id', label: 'name' },
  }
  const answer = {
    json: [
      { id: 'C1', name: 'general' },
      { id: 'C2', name: '<b>random</b>' },
    ],
  }

  async function openSettings() {
    const name = await install({
      ...KEY_CONFIG,
      base_url: upstream.url,
      resources: { channels: { list: { path: '/channels' } } },
      actions: { post_connect_user_form: { type: 'form', config: { fields: [CHANNEL] } } },
    })
    const { visitor, page, id } = await openLink({ integrations: [name] })
    return { visitor, id, settings: await visitor.post(page.path, form) }
  }

  it('load their options without script by a button, and store id and label', async () => {
    const { visitor, settings, id } = await openSettings()
    expect(settings.path).toBe(`/connect/${id}/settings`)
    upstream.script({ request: 'GET /channels', answer })
    const loaded = await visitor.post(settings.path, { intent: 'load' })
    expect(loaded.html).toContain('&lt;b&gt;random&lt;/b&gt;')
    const [, second] = choices(loaded.html, 'f.channel').map(unescaped)
    const done = await visitor.post(settings.path, { 'f.channel': second ?? '' })
    expect(done.path).toBe(`/connect/${id}/done`)
    const accountId = /integrated_account_id&quot;:&quot;([\w-]+)/.exec(done.html)?.[1] ?? ''
    expect(await account(accountId)).toMatchObject({ context: { channel: 'C2', channel_label: '<b>random</b>' } })
  })

  it('give their options to the script', async () => {
    const { visitor, id } = await openSettings()
    upstream.script({ request: 'GET /channels', answer })
    const { html } = await visitor.post(`/connect/${id}/options`, { field: 'channel', search: 'gen' })
    expect(JSON.parse(html)).toEqual({
      options: [{ value: 'C1', label: 'general', sub_text: null }],
      next_cursor: null,
    })
    const forged = { field: 'channel', cursor: `0.${Buffer.from('{"pages":1}').toString('base64url')}` }
    expect((await visitor.post(`/connect/${id}/options`, forged)).status).toBe(400)
  })

  it('say that options cannot be loaded, and of what', async () => {
    const { visitor, id, settings } = await openSettings()
    upstream.script({ request: 'GET /channels', answer: { status: 403 }, times: 2 })
    const { status, html } = await visitor.post(`/connect/${id}/options`, { field: 'channel' })
    expect([status, JSON.parse(html)]).toEqual([200, { error: 'The options could not be loaded.' }])
    expect((await visitor.post(settings.path, { intent: 'load' })).html).toContain('The options could not be loaded.')
    expect((await visitor.post(`/connect/${id}/options`, { field: 'x' })).status).toBe(404)
  })

  it('that are cancelled leave an account, and the page says so', async () => {
    const { visitor, id } = await openSettings()
    const { html } = await visitor.post(`/connect/${id}/cancel`, {})
    expect(html).toContain('may already be connected, but not everything was set up.')
    expect(html).not.toContain('Nothing was connected.')
  })

  it('that are incomplete are shown again', async () => {
    const { visitor, settings } = await openSettings()
    const rejected = await visitor.post(settings.path, {})
    expect(rejected.status).toBe(422)
    expect(rejected.html).toContain('<a href="#f-channel">Channel</a>: Choose an option.')
  })
})

describe('the end', () => {
  it('of a cancelled session is explained, and leads to the application with the code', async () => {
    const { visitor, id } = await openLink({ integrations: [keys], redirect_uri: 'https://app.example.com/done' })
    const ended = await visitor.post(`/connect/${id}/cancel`, {})
    expect(ended.html).toContain('<h1 tabindex="-1">Cancelled</h1>')
    expect(ended.html).toContain('Nothing was connected.')
    expect(ended.html).toContain('https://app.example.com/done?status=cancelled&amp;error_code=cancelled')
    expect(ended.html).toContain('<noscript><meta http-equiv="refresh" content="2;url=https://app.example.com/done?')
  })

  it('can be read for ten minutes, after which the browser forgets the session', async () => {
    const { visitor, id } = await openLink({ integrations: [keys] })
    const { headers } = await visitor.post(`/connect/${id}/cancel`, {})
    expect(headers.get('set-cookie')).toMatch(/^patchbay-link-.*; Max-Age=600$/)
    expect((await visitor.get(`/connect/${id}`)).html).toContain('Cancelled')
  })

  it('in a popup closes the window instead', async () => {
    const { link_token } = await link({ integrations: [keys], redirect_uri: 'https://app.example.com/done' })
    const visitor = browser()
    const page = await visitor.post('/connect', { link_token, mode: 'popup' }, { 'sec-fetch-site': 'cross-site' })
    const { html } = await visitor.post(page.path, form)
    expect(html).not.toContain('app.example.com/done')
    expect(html).toContain('data-close-window')
  })
})
