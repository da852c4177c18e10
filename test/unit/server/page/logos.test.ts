import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { logoCleaner } from '../../../../src/server/page/maintenance.ts'
import { insertLogos } from '../../../../src/server/page/sql.ts'
import { expectJson } from '../../../support/rest.ts'
import { startUpstream } from '../../../support/upstream.ts'
import { KEY_CONFIG, startConnectPage } from './fixture.ts'

const upstream = await startUpstream()
afterEach(() => upstream.verify())
afterAll(() => upstream[Symbol.asyncDispose]())

const { app, browser, install, link } = await startConnectPage({ PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' })
const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
const PNG = Buffer.from('89504e470d0a1a0a', 'hex')
const svg = { headers: { 'content-type': 'image/svg+xml; charset=utf-8' }, text: SVG }

let count = 0

/** The page of a link whose integration has a logo of its own. @returns path of the logo there */
async function logoPath(): Promise<{ readonly request: string; readonly path: string }> {
  count += 1
  const name = `/logo-${count}`
  const integration = await install({ ...KEY_CONFIG, logo: `${upstream.url}${name}` })
  const { url } = await link({ integrations: [integration] })
  const { html } = await browser().get(url)
  expect(html).not.toContain(upstream.url)
  return { request: `GET ${name}`, path: /<img class="logo" src="([^"]+)"/.exec(html)?.[1] ?? '' }
}

const hashOf = (path: string) => Buffer.from(path.split('/').at(-1) ?? '', 'hex')

async function get(path: string) {
  const answer = await fetch(app.url + path)
  return { status: answer.status, headers: answer.headers, body: Buffer.from(await answer.arrayBuffer()) }
}

describe('a logo', () => {
  it('is fetched once and served from this origin, an SVG without its scripts', async () => {
    const { request, path } = await logoPath()
    upstream.script({ request, answer: svg, headers: { cookie: null, referer: null } })
    for (let visit = 0; visit < 3; visit += 1) {
      const { status, headers, body } = await get(path)
      expect([status, body.toString()]).toEqual([200, SVG])
      expect(Object.fromEntries(headers)).toMatchObject({
        'content-type': 'image/svg+xml',
        'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        'cross-origin-resource-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
        'cache-control': 'public, max-age=86400',
      })
    }
  })

  it.each([
    ['is no picture', { headers: { 'content-type': 'text/html' }, text: '<script>' }],
    ['has no type', { text: 'x' }],
    ['is missing', { status: 404, headers: { 'content-type': 'image/png' }, bytes: PNG }],
    ['is empty', { headers: { 'content-type': 'image/png' }, bytes: Buffer.alloc(0) }],
    ['is too large', { headers: { 'content-type': 'image/png' }, bytes: Buffer.alloc(129 * 1024) }],
  ])('that %s is not shown, and not asked for again within the hour', async (_, answer) => {
    const { request, path } = await logoPath()
    upstream.script({ request, answer })
    for (let visit = 0; visit < 2; visit += 1) {
      const { status, headers } = await get(path)
      expect([status, headers.get('cache-control')]).toEqual([204, 'no-store'])
    }
  })

  it.each([
    ['is served as it is for a week', 6, undefined, PNG],
    ['is fetched anew after a week', 8, svg, Buffer.from(SVG)],
    ['is served as it is after a week where that fails', 8, { status: 500 }, PNG],
  ])('that is stored %s', async (_, days, answer, expected) => {
    const { request, path } = await logoPath()
    const sql = `update connect_logo set content_type = 'image/png', body = :body,
      attempted_at = now() - :days * interval '1 day' where hash = :hash`
    await execute(app.database.pool, sql, { body: PNG, days, hash: hashOf(path) })
    if (answer !== undefined) upstream.script({ request, answer })
    for (let visit = 0; visit < 2; visit += 1) expect(await get(path)).toMatchObject({ status: 200, body: expected })
  })

  it('at an address that may not be called is not fetched', async () => {
    const integration = await install(KEY_CONFIG)
    const branding = { logo_url: 'http://169.254.169.254/logo.png', display_name: 'Acme' }
    await setBranding(branding)
    const { url } = await link({ integrations: [integration] })
    const { html } = await browser().get(url)
    const path = /<img class="logo" src="([^"]+)"/.exec(html)?.[1] ?? ''
    expect((await get(path)).status).toBe(204)
  })

  it('that no page has shown for thirty days is deleted', async () => {
    const { pool } = app.database
    const logos = [29, 31, 32].map((days) => ({ days, url: `https://cdn.example.com/${days}`, hash: randomBytes(32) }))
    await insertLogos(pool, logos)
    for (const { days, hash } of logos) {
      const sql = "update connect_logo set used_at = now() - :days * interval '1 day' where hash = :hash"
      await execute(pool, sql, { days, hash })
    }
    await insertLogos(pool, logos.slice(2))
    await logoCleaner(app).runOnce()
    const sql = "select url from connect_logo where url like 'https://cdn.%' order by url"
    expect((await query<{ url: string }>(pool, sql, {})).map(({ url }) => url.slice(-2))).toEqual(['29', '32'])
  })

  it('of an address that no page has shown is not fetched', async () => {
    expect((await get(`/connect/logo/${'ab'.repeat(32)}`)).status).toBe(404)
    const { pool } = app.database
    expect(await query(pool, `select 1 from connect_logo where encode(hash, 'hex') like 'abab%'`, {})).toEqual([])
  })
})

describe('the logo of a shipped definition', () => {
  it('is shown for an integration of its name that has none of its own, without a request to anyone', async () => {
    const { url } = await link({ integrations: [await install({ ...KEY_CONFIG, label: 'Ours' }, 'hubspot')] })
    const { html } = await browser().get(url)
    expect(html).toContain('<img class="logo" src="/connect/logo/hubspot.svg"')
    const { status, headers } = await get('/connect/logo/hubspot.svg')
    expect(status).toBe(200)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'image/svg+xml',
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      'cross-origin-resource-policy': 'cross-origin',
      'cache-control': 'public, max-age=86400',
    })
  })

  it('gives way to a logo that the definition has', async () => {
    const own = { ...KEY_CONFIG, logo: `${upstream.url}/own.svg` }
    const { url } = await link({ integrations: [await install(own, 'salesforce')] })
    expect((await browser().get(url)).html).not.toContain('salesforce.svg')
  })

  it.each([
    '/connect/logo/unknown.svg',
    '/connect/logo/hibob',
    '/connect/logo/..%2Findex.ts',
    '/connect/logo/HUBSPOT.svg',
  ])('is at no other address: %s', async (path) => {
    expect([204, 404]).toContain((await get(path)).status)
    expect((await get(path)).body.toString()).not.toContain('<svg')
  })
})

async function setBranding(branding: object): Promise<void> {
  const { teamToken, environmentId } = app.first
  await expectJson('PATCH', `${app.url}/environment/${environmentId}`, teamToken, { branding })
}

describe('the branding of an environment', () => {
  it('is the name, logo and colour of its pages', async () => {
    await setBranding({
      display_name: 'Acme <Analytics>',
      logo_url: `${upstream.url}/brand.svg`,
      accent_color: '#FFD400',
    })
    upstream.script({ request: 'GET /brand.svg', answer: svg })
    const integration = await install(KEY_CONFIG)
    const { url } = await link({ integrations: [integration] })
    const { html } = await browser().get(url)
    expect(html).toContain('Acme &lt;Analytics&gt; may reach your account at Key &amp; Co')
    const logo = /<img class="logo" src="([^"]+)"/.exec(html)?.[1] ?? ''
    expect((await get(logo)).status).toBe(200)

    const [stylesheet = ''] = /\/connect\/accent\.css\?color=\w+/.exec(html) ?? []
    const { headers, body } = await get(stylesheet)
    expect(headers.get('content-type')).toBe('text/css; charset=utf-8')
    expect(body.toString()).toMatch(/^:root\{--accent:#(?!ffd400)\w{6};--on-accent:#ffffff\}/)
    expect(body.toString()).toContain(':root[data-theme="dark"]{--accent:#ffd400;--on-accent:#000000}')
  })
})
