import { describe, expect, it } from 'vitest'
import { startConnectPage } from './fixture.ts'

const { app, browser, install, link, account } = await startConnectPage()
app.startWorker()
await install()

const form = { 'f.subdomain': 'acme', 'f.api_key': 'canary-key' }

describe('connecting with an API key without script', () => {
  it('leads from the link to an active account', async () => {
    const visitor = browser()
    const { url, id } = await link({ redirect_uri: 'https://app.example.com/done?x=1' })

    const first = await visitor.get(url)
    expect(first).toMatchObject({ status: 200, path: `/connect/${id}/form` })
    expect(first.html).toContain('Connect Key &amp; Co')

    const done = await visitor.post(first.path, form)
    expect(done).toMatchObject({ status: 200, path: `/connect/${id}/done` })
    const target = /<a class="button primary" href="([^"]+)"/.exec(done.html)?.[1]?.replaceAll('&amp;', '&') ?? ''
    const parameters = Object.fromEntries(new URL(target).searchParams)
    expect(parameters).toMatchObject({ x: '1', status: 'completed', integrated_account_id: expect.any(String) })
    expect(await account(parameters.integrated_account_id ?? '')).toMatchObject({ status: 'active' })
  })
})
