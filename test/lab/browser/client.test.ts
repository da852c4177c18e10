import type { Browser, Frame, Page } from 'playwright-core'
import { afterAll, describe, expect, it } from 'vitest'
import { type SeenByHost, startHost } from './peers/host.ts'
import { listen, send } from './peers/listen.ts'
import { startScriptedPage } from './peers/scripted-page.ts'
import { closeContext, launchChromium } from './support/chromium.ts'
import { until } from './support/until.ts'

const page = await startScriptedPage()
const host = await startHost(page.url)
const browser: Browser = await launchChromium()
afterAll(async () => {
  await browser.close()
  await host[Symbol.asyncDispose]()
  await page[Symbol.asyncDispose]()
})

const COMPLETED = { status: 'completed', integration: 'acme', integrated_account_id: 'account-1' }
async function openHost(options: Record<string, unknown>, path = '/'): Promise<Page> {
  const context = await browser.newContext({ locale: 'en-GB' })
  context.setDefaultTimeout(60_000)
  const application = await context.newPage()
  await application.goto(`${host.url}${path}`)
  await application.locator('html[data-ready]').waitFor()
  await application.evaluate((given) => {
    window.options = given
  }, options)
  return application
}

function seen(application: Page): Promise<SeenByHost> {
  return application.evaluate(() => window.seen)
}

async function settled(application: Page): Promise<SeenByHost> {
  await application.waitForFunction(() => 'result' in window.seen || 'error' in window.seen)
  return await seen(application)
}

async function clickForPopup(application: Page): Promise<Page> {
  const [popup] = await Promise.all([application.waitForEvent('popup'), application.click('#connect')])
  return popup
}

async function frameOf(application: Page): Promise<Frame> {
  const element = await application.waitForSelector('iframe')
  const frame = await element.contentFrame()
  if (frame === null) throw new Error('no frame')
  await frame.waitForSelector('[data-init]')
  return frame
}

const types = ({ events }: SeenByHost): unknown[] => events.map(({ type }) => type)

describe.concurrent('the connect client in a popup', () => {
  it('posts the token in a form, and resolves with what the server reports', async () => {
    const session = page.session()
    const application = await openHost({ token: session.token, locale: 'de', theme: 'dark' })
    const popup = await clickForPopup(application)
    await popup.getByRole('heading', { name: 'The page' }).waitFor()
    expect(popup.url()).toBe(`${page.url}/connect`)
    const form = { link_token: session.token, mode: 'popup', locale: 'de', theme: 'dark' }
    expect(Object.fromEntries(session.opened.at(-1) ?? [])).toEqual(form)
    const closed = popup.waitForEvent('close')
    session.answer(200, COMPLETED)
    const after = await settled(application)
    expect(after.result).toEqual(COMPLETED)
    expect(types(after)).toEqual(
      ['opened', 'step', 'completed', 'closed'].filter((type) => types(after).includes(type)),
    )
    await closed
    expect(page.requests.filter(({ url, referer }) => `${url} ${referer}`.includes(session.token))).toEqual([])
    await closeContext(application.context())
  })

  it('does not take a closed popup for a cancellation', async () => {
    const session = page.session()
    const application = await openHost({ token: session.token })
    await (await clickForPopup(application)).close()
    await application.waitForFunction(() => window.seen.events.some(({ type }) => type === 'closed'))
    const before = await seen(application)
    expect(before).not.toHaveProperty('error')
    expect(before.events.at(-1)).toEqual({ type: 'closed', certain: false })
    session.answer(200, COMPLETED)
    expect((await settled(application)).result).toEqual(COMPLETED)
    await closeContext(application.context())
  })

  it('completes when the application isolates itself from the popup', async () => {
    const session = page.session()
    const application = await openHost({ token: session.token }, '/?coop=same-origin')
    const [popup] = await Promise.all([application.context().waitForEvent('page'), application.click('#connect')])
    await popup.getByRole('heading', { name: 'The page' }).waitFor()
    session.answer(200, COMPLETED)
    expect((await settled(application)).result).toEqual(COMPLETED)
    await closeContext(application.context())
  })

  it('rejects with popup_blocked and a link when the browser blocks it', async () => {
    const session = page.session()
    const application = await openHost({}, `/#${encodeURIComponent(JSON.stringify({ token: session.token }))}`)
    const fallbackUrl = `${page.url}/connect?link_token=${session.token}`
    expect((await settled(application)).error).toEqual({ code: 'popup_blocked', fallbackUrl })
    await closeContext(application.context())
  })

  it('continues in the same tab when the browser blocks it and onBlocked says so', async () => {
    const session = page.session()
    const context = await browser.newContext()
    const application = await context.newPage()
    await application.goto(
      `${host.url}/#${encodeURIComponent(JSON.stringify({ token: session.token, onBlocked: 'redirect' }))}`,
    )
    await application.waitForURL(`${page.url}/connect`)
    expect(session.opened.at(-1)?.get('mode')).toBe('redirect')
    await closeContext(context)
  })

  it('opens one popup for two clicks', async () => {
    const session = page.session()
    const application = await openHost({ token: session.token })
    await clickForPopup(application)
    await application.click('#connect')
    expect(application.context().pages()).toHaveLength(2)
    session.answer(200, COMPLETED)
    expect((await settled(application)).result).toEqual(COMPLETED)
    await closeContext(application.context())
  })

  it('ends when the application aborts, and closes the popup', async () => {
    const session = page.session()
    const application = await openHost({ token: session.token })
    const popup = await clickForPopup(application)
    const closed = popup.waitForEvent('close')
    await application.evaluate(() => window.abort?.abort())
    expect((await settled(application)).error?.code).toBe('cancelled')
    await closed
    await closeContext(application.context())
  })
})

describe.concurrent('an answer to a status request', () => {
  it.each([
    [200, { status: 'failed', error: { code: 'identity_changed', message: 'Another one.' } }, 'identity_changed'],
    [200, { status: 'expired', error: null }, 'expired_token'],
    [200, { status: 'cancelled', error: null }, 'cancelled'],
    [401, { error: { code: 'invalid_token', message: 'Unknown.' } }, 'invalid_token'],
    [410, { error: { code: 'used_token', message: 'Used.' } }, 'used_token'],
    [403, { error: { code: 'origin_not_allowed', message: 'Not listed.' } }, 'origin_not_allowed'],
  ])('%i %j rejects with %s', async (status, body, code) => {
    const session = page.session()
    session.answer(status, body)
    const application = await openHost({ token: session.token })
    await clickForPopup(application)
    const after = await settled(application)
    expect(after.error?.code).toBe(code)
    expect(types(after).slice(-2)).toEqual(['failed', 'closed'])
    await closeContext(application.context())
  })

  it.each([
    [429, { error: { code: 'rate_limited' } }],
    [503, 'down'],
    [200, { status: 'form', error: { code: 'credentials_rejected', message: 'Wrong.' } }],
  ])('%i %j does not end the attempt', async (status, body) => {
    const session = page.session()
    session.answer(status, body)
    const application = await openHost({ token: session.token })
    await clickForPopup(application)
    const polls = session.polls()
    await until('another request', () => session.polls() > polls)
    expect(await seen(application)).not.toHaveProperty('error')
    session.answer(200, COMPLETED)
    expect((await settled(application)).result).toEqual(COMPLETED)
    await closeContext(application.context())
  })

  it('reports a step that the user may repeat with its code', async () => {
    const session = page.session()
    session.answer(200, { status: 'form', error: { code: 'credentials_rejected', message: 'Wrong.' } })
    const application = await openHost({ token: session.token })
    await clickForPopup(application)
    await application.waitForFunction(() => window.seen.events.some(({ type }) => type === 'step'))
    const step = { type: 'step', step: 'form', code: 'credentials_rejected', message: 'Wrong.' }
    expect((await seen(application)).events.at(-1)).toEqual(step)
    await closeContext(application.context())
  })
})

describe.concurrent('options that cannot work', () => {
  it.each([
    [{}, 'invalid_token'],
    [{ token: 'pbt_something' }, 'invalid_token'],
    [{ token: 'lnk_a_b', mode: 'window' }, 'invalid_options'],
    [{ token: 'lnk_a_b', baseUrl: 'javascript:alert(1)' }, 'invalid_options'],
  ])('%j rejects with %s and opens nothing', async (options, code) => {
    const application = await openHost(options)
    await application.click('#connect')
    expect((await settled(application)).error?.code).toBe(code)
    expect(application.context().pages()).toHaveLength(1)
    await closeContext(application.context())
  })
})

describe.concurrent('the connect client in a frame', () => {
  it('gives the token to the frame alone, takes its height, and removes it at the end', async () => {
    const session = page.session('public-id')
    const application = await openHost({ token: session.token, mode: 'iframe', theme: 'dark', locale: 'de' })
    await application.click('#connect')
    const frame = await frameOf(application)
    expect(frame.url()).toBe(`${page.url}/connect/frame/public-id`)
    const init = JSON.parse((await frame.getAttribute('body', 'data-init')) ?? '{}')
    const expected = {
      source: 'patchbay',
      v: 1,
      type: 'init',
      token: session.token,
      theme: 'dark',
      locale: 'de',
      origin: host.url,
    }
    expect(init).toEqual(expected)
    await until('the height', () => application.locator('iframe').evaluate((each) => each.style.height === '321px'))
    expect(await application.getByRole('dialog', { name: 'Konto verbinden' }).count()).toBe(1)
    session.answer(200, COMPLETED)
    const after = await settled(application)
    expect(after.result).toEqual(COMPLETED)
    expect(await application.locator('dialog, iframe').count()).toBe(0)
    expect(after.messages.filter((text) => text.includes(session.token))).toEqual([])
    await closeContext(application.context())
  })

  it('keeps the focus in the dialog, and returns it', async () => {
    const session = page.session()
    const application = await openHost({ token: session.token, mode: 'iframe' })
    await application.focus('#connect')
    await application.keyboard.press('Enter')
    const frame = await frameOf(application)
    for (let press = 0; press < 6; press += 1) {
      await application.keyboard.press('Tab')
      const inside = await application.evaluate(() => document.activeElement?.closest('dialog') !== null)
      expect([inside, await application.evaluate(() => document.activeElement?.tagName)]).not.toEqual([false, 'A'])
    }
    await frame.focus('button')
    await application.keyboard.press('Escape')
    expect((await settled(application)).error?.code).toBe('cancelled')
    expect(await application.evaluate(() => document.activeElement?.id)).toBe('connect')
    await closeContext(application.context())
  })

  it('asks before it discards what was entered', async () => {
    const session = page.session()
    const application = await openHost({ token: session.token, mode: 'iframe' })
    await application.click('#connect')
    const frame = await frameOf(application)
    await frame.fill('input', 'something')
    await frame.press('input', 'Escape')
    const question = application.getByRole('alertdialog', { name: 'Discard what you have entered?' })
    await question.getByRole('button', { name: 'Keep editing' }).click()
    expect(await question.count()).toBe(0)
    expect(await frame.inputValue('input')).toBe('something')
    await application.getByRole('button', { name: 'Close' }).click()
    await question.getByRole('button', { name: 'Discard' }).click()
    expect((await settled(application)).error?.code).toBe('cancelled')
    await closeContext(application.context())
  })

  it('resolves when the session has completed before the user closes the dialog', async () => {
    const session = page.session()
    const application = await openHost({ token: session.token, mode: 'iframe' })
    await application.click('#connect')
    await frameOf(application)
    const button = await application.getByRole('button', { name: 'Close' }).elementHandle()
    session.answer(200, COMPLETED)
    // Not a click by the mouse: a poll may come first and remove the dialog.
    await button?.evaluate((each) => each.dispatchEvent(new MouseEvent('click')))
    expect((await settled(application)).result).toEqual(COMPLETED)
    await closeContext(application.context())
  })

  it('asks once more when the customer closes the dialog during a poll', async () => {
    const session = page.session()
    const application = await openHost({ token: session.token, mode: 'iframe' })
    await application.click('#connect')
    await frameOf(application)
    const held = session.holdNext()
    await application.evaluate(() => window.dispatchEvent(new Event('focus')))
    const release = await held
    await application.getByRole('button', { name: 'Close' }).click()
    session.answer(200, COMPLETED)
    release()
    expect((await settled(application)).result).toEqual(COMPLETED)
    await closeContext(application.context())
  })

  it('goes into a container of the application without a dialog', async () => {
    const session = page.session()
    const application = await openHost({ token: session.token, mode: 'iframe', inline: true })
    await application.click('#connect')
    await frameOf(application)
    expect(await application.locator('#container > iframe').count()).toBe(1)
    expect(await application.locator('dialog').count()).toBe(0)
    session.answer(200, COMPLETED)
    await settled(application)
    expect(await application.locator('iframe').count()).toBe(0)
    await closeContext(application.context())
  })

  it('ignores messages from other windows and other origins', async () => {
    const session = page.session()
    await using other = await listen((_request, response) => {
      const body = `<script>parent.postMessage({ source: 'patchbay', v: 1, type: 'close' }, '*')</script>`
      send(response, { status: 200, headers: { 'content-type': 'text/html' }, body })
    }, '127.0.0.1')
    const context = await browser.newContext({ bypassCSP: true })
    const application = await context.newPage()
    await application.goto(host.url)
    await application.locator('html[data-ready]').waitFor()
    await application.evaluate(
      (given) => {
        window.options = given
      },
      { token: session.token, mode: 'iframe' },
    )
    await application.click('#connect')
    await frameOf(application)
    const arrived = await application.evaluate(
      async (urls) => {
        const from: string[] = []
        addEventListener('message', ({ origin, data }) => data.type === 'close' && from.push(origin))
        for (const src of urls) {
          const frame = document.createElement('iframe')
          frame.src = src
          document.body.append(frame)
        }
        window.postMessage({ source: 'patchbay', v: 1, type: 'close' }, location.origin)
        while (from.length < 2) await new Promise((resolve) => setTimeout(resolve, 20))
        return from.length
      },
      [other.url],
    )
    expect(arrived).toBe(2)
    expect(await seen(application)).not.toHaveProperty('error')
    expect(await application.locator('dialog').count()).toBe(1)
    await closeContext(context)
  })

  it('rejects with frame_unavailable when the frame stays silent', async () => {
    const session = page.session('silent')
    const application = await openHost({ token: session.token, mode: 'iframe' })
    await application.click('#connect')
    expect((await settled(application)).error?.code).toBe('frame_unavailable')
    expect(await application.locator('dialog, iframe').count()).toBe(0)
    await closeContext(application.context())
  })
})

describe.concurrent('the connect client in the same tab', () => {
  it('leaves by a form, and resumes with what the server reports', async () => {
    const session = page.session()
    const application = await openHost({ token: session.token, mode: 'redirect' })
    await application.click('#connect')
    await application.waitForURL(`${page.url}/connect`)
    expect(session.opened.at(-1)?.get('mode')).toBe('redirect')
    session.answer(200, COMPLETED)
    await application.goto(`${host.url}/return?keep=1&status=completed&integrated_account_id=forged&integration=acme`)
    expect((await settled(application)).result).toEqual(COMPLETED)
    expect(application.url()).toBe(`${host.url}/return?keep=1`)
    await application.reload()
    expect((await settled(application)).result).toBeNull()
    await closeContext(application.context())
  })

  it.each([
    ['an error of the server', { status: 'failed', error: { code: 'consent_denied', message: '' } }, 'consent_denied'],
    ['an early return', { status: 'redirected', error: null }, 'cancelled'],
  ])('rejects after %s', async (_case, body, code) => {
    const session = page.session()
    const application = await openHost({ token: session.token, mode: 'redirect' })
    await application.click('#connect')
    await application.waitForURL(`${page.url}/connect`)
    session.answer(200, body)
    await application.goto(`${host.url}/return?status=completed`)
    expect((await settled(application)).error?.code).toBe(code)
    await closeContext(application.context())
  })

  it('does nothing on a page that was opened otherwise', async () => {
    const application = await openHost({}, '/return?status=completed&integrated_account_id=forged')
    expect((await settled(application)).result).toBeNull()
    await closeContext(application.context())
  })
})
