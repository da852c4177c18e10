import { describe, expect, it } from 'vitest'
import { KEY_CONFIG, startConnectPage } from './fixture.ts'

const { app, browser, install, link } = await startConnectPage()
const keys = await install()

const UNKNOWN = '01a204bd-d211-7677-bd6d-bcbe1e07087d'
const form = { 'f.subdomain': 'acme', 'f.api_key': 'canary-key' }

/** A browser that has opened a link, and its form. */
async function openForm(input = {}) {
  const visitor = browser()
  const { id, url, link_token: token } = await link({ integrations: [keys], ...input })
  const page = await visitor.get(url)
  return { visitor, id, token, page }
}

describe('every page', () => {
  it.each([
    ['of a step', async () => (await openForm()).page, 'same-origin'],
    ['of an invalid link', () => browser().get('/connect?link_token=x')],
    ['of an unknown session', () => browser().get(`/connect/${UNKNOWN}/form`)],
    ['of an unknown path', () => browser().get('/connect/nothing')],
    ['of a callback without state', () => browser().get('/connect/callback?code=x')],
    ['of an expired popup', () => browser().get('/connect/hop?ticket=x')],
    ['of a waiting popup', () => browser().get('/connect/hop')],
  ])(
    '%s allows nothing but this origin, no frame, no referrer to others and no cache',
    async (_, open, referrer = 'no-referrer') => {
      const { headers } = await open()
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      )
      expect(Object.fromEntries(headers)).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'cross-origin-opener-policy': 'unsafe-none',
        'referrer-policy': referrer,
        'x-content-type-options': 'nosniff',
        'permissions-policy': expect.stringContaining('camera=()'),
      })
    },
  )

  it('has no inline script, style or handler', async () => {
    const { page } = await openForm()
    expect(page.html).not.toMatch(/<style|style="|<script(?![^>]* src=)|\son\w+="/)
  })
})

describe('what a browser loads', () => {
  it('is below 60 kB with style and script, comes from this origin alone, and is cached by its content', async () => {
    const { page } = await openForm()
    const paths = [...page.html.matchAll(/<(?:script|link|img)[^>]* (?:src|href)="([^"]+)"/g)].map(
      ([, path]) => path ?? '',
    )
    const files = paths.filter((path) => path !== 'data:,')
    expect(files.map((path) => path.replace(/\?.*/, ''))).toEqual(['/connect/page.css', '/connect/page.js'])
    let bytes = Buffer.byteLength(page.html)
    for (const path of files) {
      const answer = await fetch(app.url + path)
      bytes += (await answer.arrayBuffer()).byteLength
      expect(answer.headers.get('cache-control')).toBe('public, max-age=86400, immutable')
      const etag = answer.headers.get('etag') ?? ''
      expect((await fetch(app.url + path, { headers: { 'if-none-match': etag } })).status).toBe(304)
    }
    expect(bytes).toBeLessThan(60_000)
  })

  it('of the client is open to modules of other origins', async () => {
    const { status, headers } = await fetch(`${app.url}/connect/client.js`)
    expect([status, headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin')
  })
})

describe('the status for the application', () => {
  const origin = 'https://app.example.com'
  const ask = (token: string, from?: string) =>
    fetch(`${app.url}/connect/status`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, ...(from === undefined ? {} : { origin: from }) },
    })

  it('is read with the token, by pages of the origins of the link alone', async () => {
    const { id, link_token: token } = await link({ integrations: [keys], origins: [origin] })
    const answer = await ask(token, origin)
    expect(answer.headers.get('access-control-allow-origin')).toBe(origin)
    expect(answer.headers.get('vary')).toContain('Origin')
    expect(await answer.json()).toEqual({
      id,
      status: 'created',
      integration: null,
      integrated_account_id: null,
      error: null,
    })
    const foreign = await ask(token, 'https://evil.example')
    expect(foreign.status).toBe(403)
    expect(await foreign.json()).toMatchObject({ error: { code: 'origin_not_allowed' } })
  })

  it('of a session that failed a step names the error', async () => {
    const { visitor, id, token } = await openForm({ origins: [origin] })
    await visitor.post(`/connect/${id}/cancel`, {})
    expect(await (await ask(token, origin)).json()).toMatchObject({
      status: 'cancelled',
      error: { code: 'cancelled', message: expect.any(String) },
    })
  })

  it('is asked for after a preflight', async () => {
    const { status, headers } = await fetch(`${app.url}/connect/status`, { method: 'OPTIONS', headers: { origin } })
    expect(status).toBe(204)
    expect(headers.get('access-control-allow-headers')).toContain('authorization')
    expect(headers.has('access-control-allow-credentials')).toBe(false)
  })

  it.each(['', 'x', `lnk_${'0'.repeat(32)}_x`])(
    'without a valid token (%j) is an error that pages can read',
    async (token) => {
      const answer = await ask(token, origin)
      expect(answer.status).toBe(404)
      expect(await answer.json()).toMatchObject({ error: { code: 'invalid_token' } })
    },
  )
})

describe('the frame', () => {
  const origins = ['https://app.example.com', 'https://other.example.com']
  const openFrame = (body: object) =>
    fetch(`${app.url}/connect/open`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
      body: JSON.stringify(body),
    })

  it.each([
    ['another session', async () => ({ ...(await link({ origins })), session: (await link({ origins })).id })],
    ['no session', async () => ({ ...(await link({ origins })), session: undefined })],
    ['a session without origins', async () => ({ ...(await link()), session: undefined, isOwn: true })],
  ])('of %s does not open with a token', async (_, make) => {
    const { link_token: token, id, session, isOwn }: Record<string, unknown> = await make()
    const answer = await openFrame({ token, session: isOwn === true ? id : session })
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ error: { code: 'invalid_token' } })
  })

  it('may be shown by the origins of the link alone', async () => {
    const { id, link_token: token } = await link({ integrations: [keys], origins })
    for (const name of [id, id.replaceAll('-', '')]) {
      const { status, headers, html } = await browser().get(`/connect/frame/${name}`)
      expect(status).toBe(200)
      expect(headers.get('content-security-policy')).toContain(`; frame-ancestors ${origins.join(' ')}`)
      expect(html).toContain('<noscript>')
      expect(html).not.toContain(token)
    }
  })

  it('of a link without origins, or of none, is not served', async () => {
    const { id } = await link()
    for (const name of [id, UNKNOWN, 'x', '']) {
      const { status, headers } = await browser().get(`/connect/frame/${name}`)
      expect([status, headers.get('content-security-policy')]).toEqual([
        404,
        expect.stringContaining("ancestors 'none'"),
      ])
    }
  })

  it('opens with the token in a body, and shows steps to the holder of the key alone', async () => {
    const { id, link_token: token } = await link({ integrations: [keys], origins })
    const answer = await openFrame({ token, session: id })
    const { key, path } = (await answer.json()) as { key: string; path: string }
    expect(answer.headers.getSetCookie()).toEqual([])
    expect(path).toBe(`/connect/${id}`)
    const shown = await browser().get(path, { 'patchbay-link-key': key })
    expect(shown).toMatchObject({ status: 200, path: `/connect/${id}/form` })
    expect(shown.html).not.toContain(key)
    const foreign = await browser().get(path, { 'patchbay-link-key': `${key.slice(0, -1)}x` })
    expect(foreign.status).toBe(404)
  })
})

describe('a form of another site', () => {
  it.each([
    [{ 'sec-fetch-site': 'cross-site' }],
    [{ 'sec-fetch-site': 'same-site' }],
    [{ 'sec-fetch-site': 'cross-site', origin: 'null' }],
  ])('with %j is rejected and changes nothing', async (headers) => {
    const { visitor, page } = await openForm()
    const answer = await visitor.post(page.path, form, headers)
    expect(answer.status).toBe(403)
    expect(answer.html).toContain('This request came from another site')
    expect((await visitor.get(page.path)).path).toBe(page.path)
  })

  it('of a browser that names only its origin, or nothing, is rejected too', async () => {
    const { visitor, page } = await openForm()
    const cookie = [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const send = (origin?: string) =>
      fetch(app.url + page.path, {
        method: 'POST',
        headers: { cookie, ...(origin === undefined ? {} : { origin }) },
        body: new URLSearchParams({}),
        redirect: 'manual',
      })
    for (const origin of ['https://evil.example', 'null', undefined]) expect((await send(origin)).status).toBe(403)
    expect((await send(new URL(app.url).origin)).status).toBe(422)
  })

  it('may open a link: that is how an application opens it', async () => {
    const visitor = browser()
    const { id, link_token } = await link({ integrations: [keys] })
    const body = { link_token, mode: 'popup', theme: 'dark', locale: 'de' }
    const opened = await visitor.post('/connect', body, { 'sec-fetch-site': 'cross-site' })
    expect(opened).toMatchObject({ status: 200, path: `/connect/${id}/form` })
    expect(opened.html).toContain('<html lang="de" dir="ltr" data-theme="dark">')
  })
})

describe('the cookies of sessions', () => {
  it('are deleted but for the newest ten and the present one', async () => {
    const { visitor, id, page } = await openForm()
    const others = Array.from({ length: 12 }, (_, at) => `f${at.toString(16)}${UNKNOWN.slice(2)}`)
    for (const other of [UNKNOWN, ...others]) visitor.cookies.set(`patchbay-link-${other}`, `${'A'.repeat(43)}.link..`)
    const { headers } = await visitor.get(page.path)
    const deleted = headers.getSetCookie().filter((line) => line.includes('Max-Age=0'))
    const names = [others[1], others[0], UNKNOWN].map((other) => `patchbay-link-${other}`)
    expect(deleted.map((line) => line.split('=', 1)[0]).sort()).toEqual(names.sort())
    expect(headers.getSetCookie()[0]).toContain(`patchbay-link-${id}=`)
  })
})

describe('a session', () => {
  it('is not shown to a browser without its cookie, or with a wrong one', async () => {
    const { visitor, page } = await openForm()
    expect((await browser().get(page.path)).status).toBe(404)
    for (const name of visitor.cookies.keys()) visitor.cookies.set(name, `${'A'.repeat(43)}.link..`)
    expect((await visitor.get(page.path)).status).toBe(404)
  })

  it('that another browser has used says so, and sends a form of the application to it', async () => {
    const { visitor, id, token, page } = await openForm()
    await visitor.post(page.path, { 'f.subdomain': 'acme', 'f.api_key': 'x' })
    const other = await browser().get(`/connect?link_token=${token}`)
    expect(other.status).toBe(410)
    expect(other.html).toContain('This link has been used already')
    const again = await visitor.post('/connect', { link_token: token }, { 'sec-fetch-site': 'cross-site' })
    expect(again.path).toContain(`/connect/${id}/`)
  })
})

describe('values of others', () => {
  const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>'\``

  it('are shown as text, be they of a definition or of the customer', async () => {
    const texts = { label: HOSTILE, help_text: HOSTILE, placeholder: HOSTILE, prefix: HOSTILE, suffix: HOSTILE }
    const fields = [
      { name: 'subdomain', required: true, format: 'hostname_label', ...texts },
      { name: 'api_key', type: 'password', required: true, label: HOSTILE },
    ]
    const credentials = { api_key: { config: { fields } } }
    const installed = await install({ ...KEY_CONFIG, label: HOSTILE, credentials })
    const { visitor, page } = await openForm({ integrations: [installed] })
    const rejected = await visitor.post(page.path, {
      'f.subdomain': `a_b${HOSTILE}`,
      'f.api_key': HOSTILE,
      [HOSTILE]: HOSTILE,
    })
    for (const { html } of [page, rejected]) {
      expect(html).toContain('&quot;&gt;&lt;img src=x onerror=alert(1)&gt;')
      expect(html).not.toMatch(/<img(?! class="logo")|<script(?! src="\/connect\/)|onerror=alert\(1\)>/)
    }
    expect(rejected.status).toBe(422)
  })

  it('that are secret are not sent back', async () => {
    const { visitor, page } = await openForm()
    const rejected = await visitor.post(page.path, { 'f.subdomain': '', 'f.api_key': 'canary-key' })
    expect(rejected.status).toBe(422)
    expect(rejected.html).not.toContain('canary-key')
  })
})

describe('a request that cannot be read', () => {
  it.each([
    ['a body of 65 kB', 'x'.repeat(65 * 1024), 'application/x-www-form-urlencoded', 413],
    ['a thousand and one values', 'a=1&'.repeat(1_001), 'application/x-www-form-urlencoded', 400],
    ['NUL', 'f.subdomain=%00', 'application/x-www-form-urlencoded', 400],
    ['a name with NUL', '%00=x', 'application/x-www-form-urlencoded', 400],
    ['JSON', '{}', 'application/json', 415],
    ['files', '--x--', 'multipart/form-data; boundary=x', 415],
    ['no type', 'a=b', '', 415],
  ])('with %s gets a page that says what to do', async (_, body, type, status) => {
    const { visitor, page } = await openForm()
    const cookie = [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(app.url + page.path, {
      method: 'POST',
      headers: { cookie, 'content-type': type, 'sec-fetch-site': 'same-origin' },
      body,
    })
    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(await answer.text()).toContain('<h1 tabindex="-1">')
  })

  it.each([
    ['GET', '/connect'],
    ['GET', '/connect?link_token='],
    ['GET', `/connect?link_token=lnk_${'0'.repeat(32)}_x`],
    ['GET', `/connect?link_token=${'x'.repeat(4_000)}`],
    ['GET', '/connect/%00'],
    ['GET', '/connect/../x'],
    ['GET', `/connect/${UNKNOWN}`],
    ['GET', `/connect/${UNKNOWN}/form/more`],
    ['POST', `/connect/${UNKNOWN}/form`],
    ['GET', `/connect/hop?ticket=${'x'.repeat(4_000)}`],
    ['GET', '/connect/callback'],
    ['GET', `/connect/callback?state=${'x'.repeat(4_000)}&code=%00`],
    ['POST', '/connect/callback'],
    ['POST', '/connect/open'],
    ['POST', '/connect/status'],
    ['GET', '/connect/accent.css'],
    ['GET', '/connect/accent.css?color=red;}body{x'],
    ['GET', '/connect/logo/x'],
    ['GET', `/connect/logo/${'0'.repeat(64)}`],
    ['PUT', '/connect'],
    ['DELETE', `/connect/${UNKNOWN}/form`],
  ])('%s %s is a mistake of the client', async (method, path) => {
    const answer = await fetch(app.url + path, {
      method,
      redirect: 'manual',
      headers: { 'sec-fetch-site': 'same-origin' },
    })
    await answer.body?.cancel()
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.status).toBeLessThan(500)
  })
})
