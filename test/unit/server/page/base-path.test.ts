import { expect, it } from 'vitest'
import { startConnectPage } from './fixture.ts'

/** With characters that mean something in HTML and to `replace`. */
const BASE = "/pb&amp$1'"

const { app, browser, install, link } = await startConnectPage({ PATCHBAY_PUBLIC_URL: `https://app.example${BASE}/` })
/** The value of an attribute. */
function unescaped(text: string): string {
  return text.replaceAll('&#39;', "'").replaceAll('&amp;', '&')
}

app.startWorker()
await install()

it.each([
  ['passes it on', (path: string) => path],
  ['removes it', (path: string) => path.slice(BASE.length)],
])('below the path of the public address, an account is connected through a proxy that %s', async (_, passOn) => {
  const visitor = browser(passOn)
  const { url, id } = await link()
  expect(url.startsWith(`https://app.example${BASE}/connect?link_token=`)).toBe(true)
  const { pathname, search } = new URL(url)

  const first = await visitor.get(pathname + search)
  expect(first).toMatchObject({ status: 200, path: `${BASE}/connect/${id}/form` })
  const form = unescaped(/<form[^>]* action="([^"]+)"/.exec(first.html)?.[1] ?? '')
  const rejected = await visitor.post(form, { 'f.subdomain': 'acme', 'f.api_key': '' })
  const done = await visitor.post(form, { 'f.subdomain': '/connect/acme', 'f.api_key': 'k' })
  expect(done.html).toContain('value="/connect/acme"')
  const last = await visitor.post(form, { 'f.subdomain': 'acme', 'f.api_key': 'k' })

  expect(last).toMatchObject({ status: 200, path: `${BASE}/connect/${id}/done` })
  const named = [first, rejected, done, last].flatMap(({ html }) =>
    [...html.matchAll(/="(\/(?!\/)[^"]*)"/g)]
      .map(([, path = '']) => unescaped(path))
      .filter((path) => path !== '/connect/acme'),
  )
  expect(named.length).toBeGreaterThan(10)
  expect(named.filter((path) => !path.startsWith(`${BASE}/connect/`))).toEqual([])
  for (const path of new Set(named.filter((each) => /\.(css|js)\b/.test(each))))
    expect((await visitor.get(path)).status).toBe(200)
})
