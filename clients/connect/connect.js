/**
 * Opens Patchbay's connect page from an application: in a popup, an iframe or the same tab. Types and documentation are in
 * `connect.d.ts`, the messages exchanged with the page in `README.md`.
 *
 * The server decides the outcome, and polling it is the only channel that always works: a third party's
 * Cross-Origin-Opener-Policy severs the popup (its `closed` is then true at once), and browsers partition storage between
 * sites. Messages of the page only trigger an early poll.
 */

const POLL_MS = 2_000
const POLL_MAX_MS = 10_000
const POLL_GROWTH = 1.3
const POLL_TIMEOUT_MS = 15_000
const CLOSE_POLL_MS = 5_000
/** A frame that has loaded and sends no message for this long shows an error of the browser instead of the page. */
const FRAME_READY_MS = 5_000
/** The page closes its own popup after half a second; this closes one whose page could not. */
const POPUP_CLOSE_MS = 1_500
const POPUP_LOAD_MS = 3_000
const STORAGE_KEY = 'patchbay.connect'
const TOKEN = /^lnk_([0-9A-Za-z-]+)_[0-9A-Za-z_-]+$/
/** Query parameters that the page appends to the redirect address. */
const RESULT_PARAMETERS = ['status', 'integrated_account_id', 'integration', 'error_code']
const FINAL_CODES = { failed: 'provider_error', expired: 'expired_token', cancelled: 'cancelled' }
const TEXTS = {
  en: {
    title: 'Connect an account',
    close: 'Close',
    ask: 'Discard what you have entered?',
    keep: 'Keep editing',
    drop: 'Discard',
  },
  de: {
    title: 'Konto verbinden',
    close: 'Schließen',
    ask: 'Ihre Eingaben verwerfen?',
    keep: 'Weiter bearbeiten',
    drop: 'Verwerfen',
  },
}

/** Attempts in progress by token: a double click opens one window. */
const attempts = new Map()

export class ConnectError extends Error {
  name = 'ConnectError'
  constructor(code, message, details = {}) {
    super(message || code)
    this.code = code
    Object.assign(this, details)
  }
}

export function connect(options) {
  let settings
  try {
    settings = readOptions(options)
  } catch (error) {
    return Promise.reject(error)
  }
  const running = attempts.get(settings.token)
  if (running) {
    running.focus()
    return running.promise
  }
  const attempt = new Attempt(settings)
  attempts.set(settings.token, attempt)
  // Runs synchronously up to window.open: browsers allow a popup only within the click.
  attempt.start()
  return attempt.promise
}

export async function resume(options = {}) {
  const url = new URL(location.href)
  if (!url.searchParams.has('status')) return undefined
  const stored = takeStored()
  if (!stored && !options.token) return undefined
  const settings = readOptions({ ...stored, ...options, mode: 'redirect' })
  for (const name of RESULT_PARAMETERS) url.searchParams.delete(name)
  history.replaceState(history.state, '', url)
  const attempt = new Attempt(settings)
  await attempt.poll()
  if (attempt.isAnswered)
    attempt.fail(new ConnectError('cancelled', 'The customer returned before the session was complete.'))
  return attempt.promise
}

/** One attempt: shows the page, polls the session, settles the promise, removes what it added. */
class Attempt {
  #view
  #timer
  #delayMs = POLL_MS
  #polling
  #isSettled = false
  #seen = ''
  #stop = new AbortController()
  #resolve
  #reject

  constructor(settings) {
    this.settings = settings
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    const { signal } = this.#stop
    const pollSoon = () => document.visibilityState === 'visible' && this.pollNow()
    addEventListener('focus', pollSoon, { signal })
    document.addEventListener('visibilitychange', pollSoon, { signal })
    addEventListener('message', (event) => this.#receive(event), { signal })
    settings.signal?.addEventListener('abort', () => this.abort(), { signal })
  }

  start() {
    const { settings } = this
    if (settings.signal?.aborted) return this.abort()
    if (settings.mode === 'redirect') return this.#redirect()
    this.#view = settings.mode === 'iframe' ? openFrame(settings, this) : openPopup(settings)
    if (!this.#view) {
      if (settings.onBlocked === 'redirect') return this.#redirect()
      const { fallbackUrl } = settings
      const redirect = () => submitToken(settings, 'redirect')
      return this.fail(new ConnectError('popup_blocked', 'The browser blocked the popup.', { fallbackUrl, redirect }))
    }
    this.emit({ type: 'opened', mode: settings.mode })
    this.#schedule()
  }

  focus() {
    this.#view?.focus()
  }

  emit(event) {
    try {
      this.settings.onEvent?.(event)
    } catch (error) {
      // An error of the application's listener must not end the attempt.
      setTimeout(() => {
        throw error
      })
    }
  }

  abort() {
    const cause = this.settings.signal?.reason
    this.fail(new ConnectError('cancelled', 'The application aborted the attempt.', { cause }))
  }

  /** The customer closed the dialog. The session may have completed since the last poll. */
  async close() {
    const cancel = () => this.fail(new ConnectError('cancelled', 'The customer closed the dialog.'))
    setTimeout(cancel, CLOSE_POLL_MS)
    await this.#polling
    await this.poll()
    cancel()
  }

  fail(error) {
    if (this.#isSettled) return
    this.emit({ type: 'failed', code: error.code, message: error.message })
    this.#settle(0)
    this.#reject(error)
  }

  pollNow() {
    this.#delayMs = POLL_MS
    void this.poll()
  }

  /** One poll at a time; a call during one waits for its answer. */
  poll() {
    this.#polling ??= this.#ask().finally(() => {
      this.#polling = undefined
    })
    return this.#polling
  }

  async #ask() {
    if (this.#isSettled) return
    clearTimeout(this.#timer)
    try {
      const session = await fetchStatus(this.settings, this.#stop.signal)
      if (session && !this.#isSettled) this.#apply(session)
    } catch (error) {
      // Anything but a definite answer (offline, 5xx, too many requests) is tried again.
      if (error instanceof ConnectError) this.fail(error)
    }
    this.#schedule()
  }

  #schedule() {
    if (this.#isSettled) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.poll(), this.#delayMs)
    this.#delayMs = Math.min(this.#delayMs * POLL_GROWTH, POLL_MAX_MS)
    if (this.#view?.seemsClosed()) this.emit({ type: 'closed', certain: false })
  }

  /** A result from the server. A failed attempt that the customer can repeat is a step with a code. */
  #apply({ status, integration, integrated_account_id, error }) {
    const { code, message } = error ?? {}
    if (status === 'completed') {
      const result = { status, integrated_account_id, integration }
      this.emit({ type: 'completed', ...result })
      this.#settle(POPUP_CLOSE_MS)
      return this.#resolve(result)
    }
    const final = FINAL_CODES[status]
    if (final) return this.fail(new ConnectError(code ?? final, message))
    const seen = `${status} ${code}`
    if (seen === this.#seen) return
    this.#seen = seen
    this.isAnswered = true
    this.#delayMs = POLL_MS
    this.emit({ type: 'step', step: status, ...(code && { code, message }) })
  }

  #receive(event) {
    const { data, origin, source } = event
    if (origin !== this.settings.origin || !this.#view || source !== this.#view.window()) return
    if (data?.source !== 'patchbay' || data.v !== 1) return
    this.#view.receive?.(data)
    if (['opened', 'step', 'completed', 'failed'].includes(data.type)) this.pollNow()
  }

  #redirect() {
    const { token, baseUrl } = this.settings
    try {
      sessionStorage.setItem(STORAGE_KEY, JSON.stringify({ token, baseUrl }))
    } catch {
      // Without storage the application passes the token to resume().
    }
    this.emit({ type: 'opened', mode: 'redirect' })
    submitToken(this.settings, 'redirect')
  }

  #settle(popupCloseMs) {
    this.#isSettled = true
    clearTimeout(this.#timer)
    this.#stop.abort()
    attempts.delete(this.settings.token)
    if (!this.#view) return
    this.#view.remove(popupCloseMs)
    this.emit({ type: 'closed', certain: true })
  }
}

function openPopup(settings) {
  const { width = 520, height = 720 } = settings
  const left = Math.round(screenX + Math.max(0, outerWidth - width) / 2)
  const top = Math.round(screenY + Math.max(0, outerHeight - height) / 2)
  const name = `patchbay_${crypto.randomUUID()}`
  const popup = open('about:blank', name, `popup,width=${width},height=${height},left=${left},top=${top}`)
  // Some blockers return a window that is closed already. Later on, `closed` says nothing: see above.
  if (!popup || popup.closed) return undefined
  submitToken(settings, 'popup', name)
  let isReported = false
  return {
    window: () => popup,
    focus: () => popup.focus(),
    seemsClosed() {
      const isNew = popup.closed && !isReported
      isReported ||= isNew
      return isNew
    },
    remove: (closeMs) => setTimeout(() => closePopup(popup, Date.now() + POPUP_LOAD_MS), closeMs),
  }
}

/** Chromium loses a close while a page of another origin replaces about:blank. */
function closePopup(popup, loadUntil) {
  if (isBlank(popup) && Date.now() < loadUntil) setTimeout(() => closePopup(popup, loadUntil), 50)
  else popup.close()
}

function isBlank(popup) {
  try {
    return !popup.closed && popup.location.href === 'about:blank'
  } catch {
    return false
  }
}

/** A form carries the token in its body: it appears in no address, history entry or referrer. */
function submitToken({ token, baseUrl, locale, theme }, mode, target = '_self') {
  const form = document.createElement('form')
  Object.assign(form, { method: 'POST', action: `${baseUrl}/connect`, target, hidden: true })
  for (const [name, value] of Object.entries({ link_token: token, mode, locale, theme })) {
    if (value === undefined) continue
    const input = document.createElement('input')
    form.append(Object.assign(input, { type: 'hidden', name, value }))
  }
  document.body.append(form)
  form.submit()
  form.remove()
}

/** The page in an iframe: in the application's container, else in a modal dialog. */
function openFrame(settings, attempt) {
  const { container, width = 480, height = 640, token, theme, locale } = settings
  const texts = TEXTS[String(locale ?? document.documentElement.lang).startsWith('de') ? 'de' : 'en']
  const frame = document.createElement('iframe')
  Object.assign(frame, { title: texts.title, src: settings.frameUrl, referrerPolicy: 'no-referrer' })
  frame.style.cssText = `border:0;width:100%;height:${height}px;max-height:100%;color-scheme:normal;display:block`
  let isReady = false
  let isDirty = false
  frame.addEventListener('load', () =>
    setTimeout(() => isReady || attempt.fail(new ConnectError('frame_unavailable', FRAME_HELP)), FRAME_READY_MS),
  )
  const close = () => {
    if (!isDirty || !dialog) return attempt.close()
    dialog.ask()
  }
  const dialog = container
    ? undefined
    : createDialog({ frame, width, theme, texts, close, drop: () => attempt.close() })
  if (container) container.append(frame)
  const send = (message) => frame.contentWindow?.postMessage({ source: 'patchbay', v: 1, ...message }, settings.origin)
  return {
    window: () => frame.contentWindow,
    focus: () => frame.focus(),
    seemsClosed: () => false,
    receive(message) {
      if (message.type === 'ready') {
        isReady = true
        send({ type: 'init', token, theme, locale })
      } else if (message.type === 'resize' && message.height > 0) {
        frame.style.height = `${Math.ceil(message.height)}px`
      } else if (message.type === 'dirty') {
        isDirty = message.dirty === true
      } else if (message.type === 'close') close()
    },
    remove() {
      isReady = true
      send({ type: 'close' })
      dialog?.remove()
      frame.remove()
    },
  }
}

const FRAME_HELP =
  'The page did not load in the frame: the link token must list the origin of this page, and its Content-Security-Policy must allow the frame.'

/**
 * A modal <dialog>: the browser makes the rest of the page inert, keeps the focus inside and restores it. Styles are set
 * through CSSOM, which a Content-Security-Policy without 'unsafe-inline' permits.
 */
function createDialog({ frame, width, theme, texts, close, drop }) {
  let isRemoved = false
  const dialog = element('dialog', {}, FULL_SCREEN)
  dialog.setAttribute('aria-label', texts.title)
  const colors = /^(light|dark)$/.test(theme) ? theme : 'light dark'
  const box = element('div', {}, `${BOX};max-width:${width}px;color-scheme:${colors}`)
  const question = element('div', { role: 'alertdialog' }, QUESTION)
  question.setAttribute('aria-label', texts.ask)
  const hide = () => {
    question.style.display = 'none'
    frame.focus()
  }
  const keep = button(texts.keep, hide)
  question.append(element('span', { textContent: texts.ask }, 'flex:1 0 100%'), keep, button(texts.drop, drop))
  const cross = button('×', close)
  cross.setAttribute('aria-label', texts.close)
  cross.style.cssText += ';margin-left:auto;min-width:32px;border-color:transparent;font-size:20px'
  const bar = element('div', {}, 'display:flex;padding:6px')
  bar.append(cross)
  box.append(bar, question, frame)
  dialog.append(box)
  dialog.addEventListener('cancel', (event) => {
    event.preventDefault()
    if (question.style.display === 'none') close()
    else hide()
  })
  // Browsers close a dialog on a second Escape even when the first one was prevented.
  dialog.addEventListener('close', () => isRemoved || drop())
  document.body.append(dialog)
  dialog.showModal()
  frame.focus()
  return {
    ask() {
      question.style.display = 'flex'
      keep.focus()
    },
    remove() {
      isRemoved = true
      dialog.close()
      dialog.remove()
    },
  }
}

const FULL_SCREEN =
  'border:0;margin:0;padding:8px;width:100vw;height:100dvh;max-width:none;max-height:none;box-sizing:border-box;background:rgb(0 0 0/.5);overflow:auto'
const BOX =
  'margin:auto;max-height:100%;display:flex;flex-direction:column;overflow:auto;border-radius:12px;background:light-dark(#fff,#1b1d22);color:light-dark(#16181d,#f2f3f5)'
const QUESTION =
  'display:none;flex-wrap:wrap;align-items:center;gap:8px;padding:8px 16px;font:15px/1.5 system-ui,sans-serif'
const BUTTON =
  'min-height:32px;padding:0 12px;font:inherit;border:1px solid currentColor;border-radius:6px;background:none;color:inherit;cursor:pointer'

function element(name, properties, cssText) {
  const created = Object.assign(document.createElement(name), properties)
  created.style.cssText = cssText
  return created
}

function button(textContent, onclick) {
  return element('button', { type: 'button', textContent, onclick }, BUTTON)
}

/** @returns the session, or undefined to ask again; throws a ConnectError for an answer that will not change */
async function fetchStatus({ baseUrl, token }, stop) {
  const response = await fetch(`${baseUrl}/connect/status`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
    cache: 'no-store',
    signal: AbortSignal.any([stop, AbortSignal.timeout(POLL_TIMEOUT_MS)]),
  })
  if (response.ok) return response.json()
  if (response.status >= 500 || response.status === 429 || response.status === 408) return undefined
  const { error } = await response.json().catch(() => ({}))
  throw new ConnectError(error?.code ?? 'invalid_token', error?.message)
}

function readOptions({ token, baseUrl, mode = 'popup', ...rest } = {}) {
  const invalid = (message) => new ConnectError('invalid_options', message)
  const id = TOKEN.exec(token ?? '')?.[1]
  if (!id) throw new ConnectError('invalid_token', 'token is not a link token.')
  if (!['popup', 'iframe', 'redirect'].includes(mode)) throw invalid('mode is popup, iframe or redirect.')
  const base = baseUrl ?? /^(https?:.*)\/connect\/client\.js/.exec(import.meta.url)?.[1]
  const url = URL.parse(base ?? '', location.href)
  if (!base || !url || !/^https?:$/.test(url.protocol)) throw invalid('baseUrl is the public address of Patchbay.')
  const address = url.origin + url.pathname.replace(/\/+$/, '')
  return {
    ...rest,
    token,
    mode,
    baseUrl: address,
    origin: url.origin,
    frameUrl: `${address}/connect/frame/${id}`,
    fallbackUrl: `${address}/connect?link_token=${token}`,
  }
}

function takeStored() {
  try {
    const text = sessionStorage.getItem(STORAGE_KEY)
    sessionStorage.removeItem(STORAGE_KEY)
    return text ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}
