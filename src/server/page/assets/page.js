/**
 * The script of the connect page. In a window of its own every step works without it: it adds search, revealed passwords,
 * polling and a popup's messages. In a frame, where there is no cookie, it keeps the key of the session in memory and loads
 * the pages itself.
 *
 * Markup comes from the server alone, where it is escaped; messages of the host set no markup.
 */

const POLL_MS = 1_000
const POLL_MAX_MS = 10_000
const POLL_GROWTH = 1.3
/** From then on the page says that the third party takes long. */
const SLOW_MS = 10_000
const CLOSE_MS = 500
const LEAVE_MS = 1_200
const PROTOCOL = { source: 'patchbay', v: 1 }
/** The path below which all pages are, with that of the public address. */
const ROOT = new URL('.', import.meta.url).pathname
const HOP = `${ROOT}hop`

/** Set in a frame: the headers that replace the cookie, and the origin of the application's page. */
let frame
let isDirty = false
let isBusy = false
/** When the present content was shown. */
let shownAtMs = 0
let poll = { timer: 0, delayMs: POLL_MS }
/** The popup in which the customer consents, opened by a click in the frame. */
let consentPopup
let optionCount = 0

const main = () => document.querySelector('main')

/** Sends a message to the application's page: the parent of a frame, the opener of a popup. */
function post(type, members = {}) {
  const host = frame ? parent : opener
  if (!host) return
  const origins = frame?.hostOrigin ? [frame.hostOrigin] : originsOf(main())
  for (const origin of origins) host.postMessage({ ...PROTOCOL, type, ...members }, origin)
}

/** The origins that the session allows. The browser knows the parent's, so that no other one is tried. */
function originsOf(element) {
  const allowed = JSON.parse(element.dataset.origins ?? '[]')
  const [ancestor] = (window !== parent && location.ancestorOrigins) || []
  return ancestor === undefined ? allowed : allowed.filter((origin) => origin === ancestor)
}

// Frame

function startFrame() {
  const origins = originsOf(main())
  const sessionId = location.pathname.split('/').at(-1).replaceAll('-', '')
  const storageKey = `patchbay-link-${sessionId}`
  frame = { sessionId, storageKey, headers: {} }
  addEventListener('message', ({ data, origin, source }) => {
    if (source !== parent || !origins.includes(origin)) return
    if (data?.source !== PROTOCOL.source || data.v !== PROTOCOL.v) return
    if (data.type === 'init' && !frame.hostOrigin && typeof data.token === 'string') {
      frame.hostOrigin = origin
      void openFrame(data)
    }
    if (data.type === 'close') stopPolling()
  })
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !event.defaultPrevented) post('close')
  })
  new ResizeObserver(reportHeight).observe(document.body)
  for (const origin of origins) parent.postMessage({ ...PROTOCOL, type: 'ready' }, origin)
}

/** The height of the content, not of the frame. */
function reportHeight() {
  const height = Math.ceil(document.body.getBoundingClientRect().height)
  if (height === frame.height) return
  frame.height = height
  post('resize', { height })
}

async function openFrame({ token, theme, locale }) {
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
  if (typeof locale === 'string') frame.headers['patchbay-link-locale'] = locale
  if (typeof theme === 'string') frame.headers['patchbay-link-theme'] = theme
  const isOwn = token.split('_')[1] === frame.sessionId
  const response = await fetch(`${ROOT}open`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...frame.headers },
    // A token of another session, whose origins this frame does not have, is not sent: the server answers that it is invalid.
    body: JSON.stringify({ token: isOwn ? token : '', session: frame.sessionId, key: stored() }),
    credentials: 'omit',
  })
  const { key, path, error } = await response.json()
  if (error) return showError(error)
  frame.headers['patchbay-link-key'] = key
  store(key)
  post('opened')
  await load(path)
}

/** Session storage of a frame belongs to this tab and the application's site; a reloaded frame continues with it. */
function stored() {
  try {
    return sessionStorage.getItem(frame.storageKey) ?? undefined
  } catch {
    return undefined
  }
}

function store(key) {
  try {
    sessionStorage.setItem(frame.storageKey, key)
  } catch {
    // A browser without storage: a reloaded frame begins again.
  }
}

function showError({ code, message, advice }) {
  const content = main()
  content.querySelector('h1').textContent = message
  content.querySelector('[role="status"]').textContent = advice
  post('failed', { code })
}

// Pages

/** Loads a page: in a window by the browser, in a frame into this document. */
async function load(path, body) {
  if (!frame) {
    location.assign(path)
    return
  }
  const init = body === undefined ? {} : { method: 'POST', body }
  const response = await fetch(path, { ...init, headers: frame.headers, credentials: 'omit' })
  show(new DOMParser().parseFromString(await response.text(), 'text/html'))
}

/** Replaces the content by that of a page of the server. */
function show(page) {
  stopPolling()
  setDirty(false)
  for (const selector of ['main', 'footer']) {
    const next = page.querySelector(selector)
    if (next) document.querySelector(selector).replaceWith(document.adoptNode(next))
  }
  document.title = page.title
  document.documentElement.lang = page.documentElement.lang
  document.documentElement.dir = page.documentElement.dir
  for (const link of page.querySelectorAll(`link[href^="${ROOT}accent.css"]`))
    if (!document.querySelector(`link[href="${link.getAttribute('href')}"]`))
      document.head.append(document.adoptNode(link))
  enhance()
  if (!document.activeElement?.matches('[data-focus]')) main().querySelector('h1').focus()
  main().scrollIntoView({ block: 'start' })
}

/** Adds behaviour to the present content. */
function enhance() {
  const content = main()
  shownAtMs = performance.now()
  content.querySelector('[data-focus]')?.focus()
  for (const logo of content.querySelectorAll('img[data-initials]')) enhanceLogo(logo)
  enhanceSearch(content)
  enhanceConditions(content)
  for (const button of content.querySelectorAll('[data-reveal]')) enhanceReveal(button)
  for (const tools of content.querySelectorAll('[data-file]')) enhanceFile(tools)
  for (const field of content.querySelectorAll('[data-options]')) enhanceOptions(field)
  content.querySelector('form[data-submit]')?.requestSubmit()
  isBusy = false
  const { poll: path, popup, outcome, leave, close, step } = content.dataset
  if (popup) continueInPopup(popup)
  if (path) schedulePoll(POLL_MS)
  if (content.dataset.continue) location.replace(content.dataset.continue)
  if (outcome) reportOutcome(JSON.parse(outcome))
  else post('step', { name: step })
  if (leave && !frame) setTimeout(() => location.replace(leave), LEAVE_MS)
  if (close) setTimeout(() => window.close(), CLOSE_MS)
  const closable = content.querySelector('[data-closable]')
  if (closable) closable.hidden = !(frame || opener || history.length === 1 || close)
}

function reportOutcome(outcome) {
  const { type, ...members } = outcome
  if (frame) sessionStorageRemove()
  post(type, members)
  if (!frame && opener && type === 'completed') setTimeout(() => window.close(), CLOSE_MS)
}

function sessionStorageRemove() {
  try {
    sessionStorage.removeItem(frame.storageKey)
  } catch {
    // Nothing was stored.
  }
}

// Forms

addEventListener('submit', (event) => {
  if (event.defaultPrevented) return
  const form = event.target
  if (isBusy) return event.preventDefault()
  const isHop = form.matches('[data-hop]')
  if (!frame) {
    if (form.matches('[data-guard], [data-cancel]')) setBusy(event.submitter)
    return
  }
  event.preventDefault()
  setBusy(event.submitter)
  // Within the click: a popup that is opened later is blocked.
  if (isHop) consentPopup = open(HOP, 'patchbay_consent', 'popup,width=520,height=720')
  const body = new URLSearchParams(new FormData(form, event.submitter))
  load(form.getAttribute('action'), body).catch(() => {
    setIdle(event.submitter)
    consentPopup?.close()
  })
})

addEventListener('click', (event) => {
  const target = event.target instanceof Element ? event.target : undefined
  if (target?.closest('[data-close-window]')) {
    if (frame) post('close')
    else window.close()
  }
  const link = target?.closest(`a[href^="${ROOT}"]`)
  if (!frame || !link || link.target === '_blank') return
  event.preventDefault()
  void load(link.getAttribute('href'))
})

addEventListener('input', ({ target }) => {
  if (!target.closest('form[data-guard]')) return
  setDirty(true)
  const field = target.closest('.field')
  if (field?.querySelector('.problem')) clearProblem(field)
})

/** What was wrong with a field was said of a value that is no longer there; the server looks at the new one. */
function clearProblem(field) {
  field.querySelector('.problem').remove()
  for (const input of field.querySelectorAll('[aria-invalid]')) input.removeAttribute('aria-invalid')
  const summary = main().querySelector('.alert')
  const links = [...(summary?.querySelectorAll('li > a') ?? [])]
  for (const link of links) if (field.contains(document.getElementById(link.hash.slice(1)))) link.closest('li').remove()
  const count = summary?.querySelectorAll('li').length ?? 0
  const title = summary?.querySelector('[data-one]')
  if (!title) return
  if (count === 0) return summary.remove()
  title.textContent = count === 1 ? title.dataset.one : title.dataset.other.replace('{count}', String(count))
}

/** The browser restores a page with a disabled form when the customer comes back to it. */
addEventListener('pageshow', (event) => {
  if (!event.persisted) return
  isBusy = false
  for (const button of document.querySelectorAll('button[aria-disabled]')) button.removeAttribute('aria-disabled')
  if (main().dataset.poll) schedulePoll(0)
})

function setBusy(button) {
  isBusy = true
  button?.setAttribute('aria-disabled', 'true')
}

function setIdle(button) {
  isBusy = false
  button?.removeAttribute('aria-disabled')
}

function setDirty(next) {
  if (isDirty === next) return
  isDirty = next
  if (frame) post('dirty', { dirty: next })
}

/** In a window of its own Escape cancels, after a question when something was entered. */
addEventListener('keydown', (event) => {
  const cancel = document.querySelector('form[data-cancel]')
  if (event.key !== 'Escape' || frame || !cancel || !opener || event.defaultPrevented) return
  if (!isDirty || confirm(main().dataset.leaving)) cancel.requestSubmit()
})

// Fields

function enhanceSearch(content) {
  const box = content.querySelector('form[data-search-empty]')
  if (!box) return
  const { searchEmpty, searchOne, searchOther } = box.dataset
  const [input, found] = [box.querySelector('input'), box.querySelector('[role="status"]')]
  const items = [...content.querySelectorAll('#choices > li')]
  box.querySelector('button').hidden = true
  box.addEventListener('submit', (event) => event.preventDefault())
  input.addEventListener('input', () => {
    const query = fold(input.value)
    const words = query.split(/\s+/)
    for (const item of items) item.hidden = !words.every((word) => item.firstElementChild.dataset.search.includes(word))
    const count = items.filter((item) => !item.hidden).length
    const text = count === 0 ? searchEmpty : count === 1 ? searchOne : searchOther
    found.textContent = query === '' ? '' : text.replace('{count}', String(count)).replace('{query}', input.value)
  })
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    const shown = items.filter((item) => !item.hidden)
    if (shown.length === 1) shown[0].firstElementChild.click()
  })
  if (!matchMedia('(pointer: coarse)').matches) input.focus()
}

/** Without case and accents. */
function fold(text) {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase().trim()
}

/** Fields that are shown when another one has a value; hidden ones are not sent. */
function enhanceConditions(content) {
  const fields = [...content.querySelectorAll('[data-visible-field]')]
  if (fields.length === 0) return
  const form = fields[0].closest('form')
  const update = () => {
    for (const field of fields) {
      const wanted = JSON.parse(field.dataset.visibleValues)
      const inputs = [...form.querySelectorAll(`[name="${CSS.escape(field.dataset.visibleField)}"]`)]
      const isShown = inputs.some(
        (input) => !input.matches(':disabled') && valuesOf(input).some((value) => wanted.includes(value)),
      )
      field.hidden = !isShown
      for (const input of field.querySelectorAll('input, select, textarea')) input.disabled = !isShown
    }
  }
  form.addEventListener('input', update)
  update()
}

/** What an input contributes to the value of its field; an option of a third party has its id inside. */
function valuesOf(input) {
  const { type, value, checked } = input
  const isFlag = type === 'checkbox' && value === 'true'
  if ((type === 'checkbox' || type === 'radio') && !checked) return isFlag ? ['false'] : []
  const isRemote = value !== '' && input.matches('[data-options] .options input')
  return [isRemote ? JSON.parse(value).value : value]
}

/** A picture that this server cannot fetch, which it answers with 204, is replaced by initials. */
function enhanceLogo(logo) {
  const replace = () => {
    const initials = Object.assign(document.createElement('span'), {
      className: 'logo initials',
      textContent: logo.dataset.initials,
    })
    initials.setAttribute('aria-hidden', 'true')
    logo.replaceWith(initials)
  }
  logo.addEventListener('error', replace)
  if (logo.complete && logo.naturalWidth === 0 && logo.getAttribute('src')) replace()
}

function enhanceReveal(button) {
  const input = document.getElementById(button.dataset.reveal)
  const word = button.querySelector('span')
  const [show, hide] = [word.textContent, button.dataset.conceal]
  button.hidden = false
  button.addEventListener('click', () => {
    const isShown = input.type === 'password'
    input.type = isShown ? 'text' : 'password'
    word.textContent = isShown ? hide : show
  })
}

function enhanceFile(tools) {
  const target = document.getElementById(tools.dataset.file)
  const [input, status] = [tools.querySelector('input'), tools.querySelector('[role="status"]')]
  tools.hidden = false
  input.addEventListener('change', async () => {
    const [file] = input.files
    status.textContent = ''
    if (!file) return
    if (file.size > Number(tools.dataset.bytesMax)) {
      status.textContent = tools.dataset.tooLarge
      return
    }
    target.value = await file.text()
    target.dispatchEvent(new Event('input', { bubbles: true }))
  })
}

// Polling

function schedulePoll(delayMs) {
  clearTimeout(poll.timer)
  poll = { timer: setTimeout(askStatus, delayMs), delayMs: Math.max(delayMs, POLL_MS) }
}

function stopPolling() {
  clearTimeout(poll.timer)
}

async function askStatus() {
  const content = main()
  const { poll: path, revision, step: shown } = content.dataset
  if (!path) return
  const [offline, slow, closed] = ['offline', 'slow', 'closed'].map((name) => content.querySelector(`[data-${name}]`))
  if (slow && performance.now() - shownAtMs > SLOW_MS) slow.hidden = false
  // Only a hint: a third party's opener policy makes an open window seem closed.
  if (closed && consentPopup?.closed) closed.hidden = false
  try {
    const response = await fetch(path, { headers: frame?.headers ?? {}, cache: 'no-store' })
    if (!response.ok && response.status < 500 && response.status !== 429) return
    const { step, path: next, revision: current } = await response.json()
    if (content !== main()) return
    if (offline) offline.hidden = true
    if (step !== shown) return leaveFor(next)
    if (current !== revision) await refresh(next)
  } catch {
    if (offline) {
      offline.hidden = false
      offline.textContent = content.dataset.offline
    }
  }
  const isEarly = poll.delayMs < POLL_MS * 2
  schedulePoll(Math.min(poll.delayMs * (isEarly ? 1.1 : POLL_GROWTH), POLL_MAX_MS))
}

async function leaveFor(path) {
  consentPopup?.close()
  if (frame) await load(path)
  else location.replace(path)
}

/** Updates the steps of the same page without moving the focus. */
async function refresh(path) {
  const response = await fetch(path, { headers: frame?.headers ?? {} })
  const page = new DOMParser().parseFromString(await response.text(), 'text/html')
  const content = main()
  for (const selector of ['.steps', '[data-live]']) {
    const [old, next] = [content.querySelector(selector), page.querySelector(`main ${selector}`)]
    if (!old || !next) continue
    if (selector === '.steps') old.replaceWith(document.adoptNode(next))
    else old.textContent = next.textContent
  }
  content.dataset.revision = page.querySelector('main')?.dataset.revision ?? ''
}

document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible' && main().dataset.poll) schedulePoll(0)
})

/** Sends the popup, which the click has opened, to the consent page. */
function continueInPopup(path) {
  if (consentPopup && !consentPopup.closed) {
    consentPopup.location.replace(path)
    return
  }
  const blocked = main().querySelector('[data-blocked]')
  if (!blocked) return
  blocked.hidden = false
  const link = blocked.querySelector('a')
  link.href = path
}

// Options of selects that the third party delivers

const SEARCH_DELAY_MS = 300

/** A list of options: chosen ones stay, the others are those of the present search, page by page. */
function enhanceOptions(field) {
  const { options: name, path, type, depends, parent: parentText, empty, noMatch, failed, loading } = field.dataset
  const find = (selector) => field.querySelector(selector)
  const [search, list, state, more, retry] = [
    '[data-search]',
    '.options',
    '[role="status"]',
    '[data-more]',
    '[data-retry]',
  ].map(find)
  const form = field.closest('form')
  const parents = JSON.parse(depends ?? '[]')
  let cursor
  let sequence = 0
  let timer

  const read = async (isNextPage) => {
    const current = ++sequence
    const body = new URLSearchParams(new FormData(form))
    body.set('field', name)
    body.set('search', search.value)
    if (isNextPage && cursor) body.set('cursor', cursor)
    list.setAttribute('aria-busy', 'true')
    state.textContent = loading
    more.hidden = retry.hidden = true
    let answer
    try {
      const response = await fetch(path, { method: 'POST', body, headers: frame?.headers ?? {} })
      answer = await response.json()
    } catch {
      answer = { error: failed }
    }
    // A later search, or another value of a parent, has made this answer stale.
    if (current !== sequence) return
    list.removeAttribute('aria-busy')
    showOptions(answer, isNextPage)
  }

  const showOptions = ({ options, next_cursor: next, disabled, error }, isNextPage) => {
    if (!isNextPage)
      for (const item of [...list.children])
        if (!item.matches('[data-none]') && !item.querySelector('input').checked) item.remove()
    const known = new Set(
      [...list.querySelectorAll('.check:not([data-none]) input')].map(({ value }) => JSON.parse(value).value),
    )
    const added = (options ?? []).filter(({ value }) => !known.has(value)).map(optionItem)
    list.append(...added)
    cursor = next
    list.hidden = !list.querySelector('.check:not([data-none])')
    search.hidden = Boolean(disabled) || (list.hidden && search.value === '')
    more.hidden = !next
    retry.hidden = !error
    state.textContent = disabled
      ? parentText
      : error
        ? error
        : (options?.length ?? 0) > 0
          ? ''
          : search.value === ''
            ? empty
            : noMatch
    if (isNextPage) added[0]?.querySelector('input').focus()
  }

  const optionItem = ({ value, label, sub_text: subText }) => {
    const [item, input, text] = ['div', 'input', 'label'].map((tag) => document.createElement(tag))
    const id = `${field.id}-o${++optionCount}`
    item.className = 'check'
    Object.assign(input, { type, id, name: `f.${name}`, value: JSON.stringify({ value, label }) })
    Object.assign(text, { htmlFor: id, textContent: label })
    if (subText) text.append(Object.assign(document.createElement('span'), { className: 'hint', textContent: subText }))
    item.append(input, text)
    return item
  }

  search.addEventListener('input', (event) => {
    event.stopPropagation()
    clearTimeout(timer)
    timer = setTimeout(read, SEARCH_DELAY_MS)
  })
  search.addEventListener('keydown', (event) => event.key === 'Enter' && event.preventDefault())
  more.addEventListener('click', () => read(true))
  retry.addEventListener('click', () => read())
  if (parents.length > 0)
    form.addEventListener('change', ({ target }) => {
      const changed = target.dataset.options === undefined ? target.name : `f.${target.dataset.options}`
      if (!parents.includes(changed)) return
      for (const item of list.querySelectorAll('.check:not([data-none])')) item.remove()
      list.hidden = true
      search.value = ''
      field.dispatchEvent(new Event('change', { bubbles: true }))
      void read()
    })
  void read()
}

if (main().dataset.frame === 'shell') startFrame()
else enhance()
