import { type Html, html } from '../html.ts'
import type { AlertModel } from './form.ts'
import { detailsOf, type PageContent, type PageFrame } from './layout.ts'

/** Where the customer goes from an end. */
export interface Destination {
  /** The application's address with the result in its query; absent: the window is closed. */
  readonly url: string | undefined
  /** The page goes there by itself. */
  readonly isAutomatic: boolean
}

/** Seconds until a browser without script goes to the application. */
const LEAVE_SECONDS = 2

/** The account is connected. */
export function donePage(
  frame: PageFrame,
  model: { isReconnect: boolean; destination: Destination; data: Readonly<Record<string, string | undefined>> },
): PageContent {
  const { texts, brand } = frame
  const { destination } = model
  const integration = frame.integration?.name ?? ''
  const key = model.isReconnect ? 'done.title.reconnect' : 'done.title'
  const intro =
    destination.url === undefined
      ? texts.text('done.advice')
      : texts.text('done.moving', { brand: brand?.name ?? hostOf(destination.url) })
  return {
    title: texts.text(key, { integration }),
    isEnd: true,
    ...refreshTo(destination),
    data: { step: 'done', ...leaveData(destination), ...model.data },
    mark: 'done',
    body: html`<p class="intro" role="status">${intro}</p>
${destinationAction(frame, destination)}`,
  }
}

/** The session has ended without an account, or the link cannot be used. */
export function failedPage(
  frame: PageFrame,
  model: {
    alert: AlertModel
    destination: Destination
    /** The customer ended it: that is no failure. */
    isCancelled: boolean
    data: Readonly<Record<string, string | undefined>>
  },
): PageContent {
  const { alert, destination } = model
  return {
    title: alert.title,
    isEnd: true,
    ...refreshTo(destination),
    ...(model.isCancelled ? {} : { mark: 'failed' }),
    data: { step: 'done', ...leaveData(destination), ...model.data },
    body: html`<p class="intro">${alert.advice}</p>
${detailsOf(frame.texts, alert.details, frame.integration)}${destinationAction(frame, destination)}`,
  }
}

/** A request that cannot be served. */
export function requestErrorPage(
  frame: PageFrame,
  model: { title: string; advice: string; reference: string | undefined },
): PageContent {
  const { texts } = frame
  const reference =
    model.reference !== undefined &&
    html`<p class="help">${texts.text('request.reference', { id: model.reference })}</p>`
  return {
    title: model.title,
    isEnd: true,
    data: { step: 'error' },
    body: html`<p class="intro">${model.advice}</p>
${reference}`,
  }
}

/** The popup has done its part; the frame that opened it continues. */
export function returnedPage(frame: PageFrame): PageContent {
  const { texts } = frame
  return {
    title: texts.text('returned.title'),
    isEnd: true,
    data: { step: 'returned', close: 'now' },
    body: html`<p class="intro" role="status">${texts.text('returned.advice')}</p>
${closeButton(frame)}`,
  }
}

/** Posts the parameters of a callback again, from this origin, so that the browser sends its cookie. */
export function repostPage(
  frame: PageFrame,
  model: { action: string; params: Readonly<Record<string, string>> },
): PageContent {
  const { texts } = frame
  const inputs = Object.entries(model.params).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )
  return {
    title: texts.text('repost.title'),
    isEnd: true,
    data: { step: 'consent' },
    body: html`<p class="intro" role="status">${texts.text('repost.advice')}</p>
<form method="post" action="${model.action}" data-submit>${inputs}
<div class="actions"><button class="button primary" type="submit">${texts.text('page.continue')}</button></div>
</form>`,
  }
}

/** What a popup shows until the consent page is known. */
export function startingPage(frame: PageFrame): PageContent {
  return {
    title: frame.texts.text('hop.starting.plain'),
    isEnd: true,
    data: { step: 'starting' },
    body: html`<p class="body" role="status"><span class="mark active" aria-hidden="true"></span></p>`,
  }
}

/** What a frame shows until its host has sent the token. */
export function shellPage(frame: PageFrame, origins: readonly string[]): PageContent {
  const { texts } = frame
  return {
    title: texts.text('page.title'),
    isEnd: true,
    data: { step: 'starting', origins: JSON.stringify(origins), frame: 'shell' },
    body: html`<p class="body" role="status">${texts.text('page.loading')}</p>
<noscript><h2>${texts.text('noscript.frame.title')}</h2><p>${texts.text('noscript.frame.advice')}</p></noscript>`,
  }
}

function destinationAction(frame: PageFrame, { url }: Destination): Html {
  const { texts, brand } = frame
  if (url === undefined) return closeButton(frame)
  const label = brand === undefined ? texts.text('page.return.plain') : texts.text('page.return', { brand: brand.name })
  return html`<p class="actions"><a class="button primary" href="${url}" rel="noreferrer">${label}</a></p>`
}

/** Shown by the script, where a window can be closed by a page. */
function closeButton({ texts }: PageFrame): Html {
  return html`<p class="actions" hidden data-closable><button class="button secondary" type="button" data-close-window>${texts.text('page.close')}</button></p>`
}

function leaveData({ url, isAutomatic }: Destination): Readonly<Record<string, string | undefined>> {
  return { leave: isAutomatic ? url : undefined }
}

function refreshTo({ url, isAutomatic }: Destination): Pick<PageContent, 'refreshSeconds' | 'refreshUrl'> {
  return isAutomatic && url !== undefined ? { refreshSeconds: LEAVE_SECONDS, refreshUrl: url } : {}
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url
}
