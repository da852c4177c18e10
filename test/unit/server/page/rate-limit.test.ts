import { expect, it } from 'vitest'
import { startConnectPage } from './fixture.ts'

const { app } = await startConnectPage({ PATCHBAY_RATE_LIMIT_ADDRESS: '3' })

it('pages count against the limit of the client address, files do not', async () => {
  const get = async (path: string) => {
    const answer = await fetch(app.url + path)
    return { status: answer.status, html: await answer.text(), retryAfter: answer.headers.get('retry-after') }
  }
  for (let count = 0; count < 5; count += 1) expect((await get('/connect/page.css')).status).toBe(200)
  for (let count = 0; count < 3; count += 1) expect((await get('/connect/hop')).status).toBe(200)
  const { status, html, retryAfter } = await get('/connect/hop')
  expect(status).toBe(429)
  expect(html).toContain('Too many requests')
  expect(html).toContain(`Wait ${retryAfter} seconds`)
})
