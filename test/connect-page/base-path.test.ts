import { expect, it } from 'vitest'
import { startConnectPage } from './fixture.ts'

const { app, browser, install, link } = await startConnectPage({ PATCHBAY_PUBLIC_URL: 'https://app.example/pb/' })
app.startWorker()
await install()

it.each([
  ['passes it on', (path: string) => path],
  ['removes it', (path: string) => path.slice('/pb'.length)],
])('below the path of the public address, an account is connected through a proxy that %s', async (_, passOn) => {
  const visitor = browser(passOn)
  const { url, id } = await link()
  expect(url).toMatch(/^https:\/\/app\.example\/pb\/connect\?link_token=/)
  const { pathname, search } = new URL(url)

  const first = await visitor.get(pathname + search)
  expect(first).toMatchObject({ status: 200, path: `/pb/connect/${id}/form` })
  const form = /<form[^>]* action="([^"]+)"/.exec(first.html)?.[1] ?? ''
  const rejected = await visitor.post(form, { 'f.subdomain': 'acme', 'f.api_key': '' })
  const done = await visitor.post(form, { 'f.subdomain': '/connect/acme', 'f.api_key': 'k' })
  expect(done.html).toContain('value="/connect/acme"')
  const last = await visitor.post(form, { 'f.subdomain': 'acme', 'f.api_key': 'k' })

  expect(last).toMatchObject({ status: 200, path: `/pb/connect/${id}/done` })
  const named = [first, rejected, done, last].flatMap(({ html }) =>
    [...html.matchAll(/="(\/(?!\/)[^"]*)"/g)].map(([, path = '']) => path).filter((path) => path !== '/connect/acme'),
  )
  expect(named.length).toBeGreaterThan(10)
  expect(named.filter((path) => !path.startsWith('/pb/connect/'))).toEqual([])
  for (const path of new Set(named.filter((each) => /\.(css|js)\b/.test(each))))
    expect((await visitor.get(path.replaceAll('&amp;', '&'))).status).toBe(200)
})
