import { type Html, html } from '../html.ts'
import type { TextKey, Texts } from '../texts.ts'
import { type AlertModel, alertBox } from './form.ts'
import type { PageContent, PageFrame } from './layout.ts'

/** A step of connecting that takes time. */
export interface ProgressStep {
  readonly name: 'exchanging' | 'post_install' | 'validating'
  readonly state: 'done' | 'active' | 'waiting'
  /** How long it took, or has taken so far; absent while it waits. */
  readonly durationMs: number | undefined
}

/** Seconds after which a browser without script asks again. */
const REFRESH_SECONDS = 3

/** Steps with their states. The script polls `statusPath` and loads the page again when `revision` changes. */
export function progressPage(
  frame: PageFrame,
  model: { steps: readonly ProgressStep[]; statusPath: string; revision: string; cancelPath: string | undefined },
): PageContent {
  const { texts } = frame
  const integration = frame.integration?.name ?? ''
  const current = model.steps.find(({ state }) => state === 'active')
  return {
    title: texts.text('progress.title', { integration }),
    cancelPath: model.cancelPath,
    refreshSeconds: REFRESH_SECONDS,
    data: { step: 'progress', poll: model.statusPath, revision: model.revision, offline: texts.text('page.offline') },
    body: html`<p class="intro">${texts.text('progress.intro')}</p>
<p class="visually-hidden" role="status" data-live>${current && stepName(texts, current, integration)}</p>
<ol class="steps">
${model.steps.map((step) => stepItem(texts, step, integration))}</ol>
<p class="note" role="status" hidden data-slow>${texts.text('progress.slow', { integration })}</p>
<p class="note" role="status" hidden data-offline></p>`,
  }
}

function stepItem(texts: Texts, step: ProgressStep, integration: string): Html {
  const state: TextKey = `progress.state.${step.state}`
  const duration =
    step.durationMs !== undefined && html`<span class="time">${formatDuration(texts, step.durationMs)}</span>`
  return html`<li data-state="${step.state}"><span class="mark" aria-hidden="true"></span><span class="what">${stepName(texts, step, integration)}<span class="visually-hidden"> – ${texts.text(state)}</span></span>${duration}</li>\n`
}

function stepName(texts: Texts, { name }: ProgressStep, integration: string): string {
  return texts.text(`progress.${name}`, { integration })
}

/** Tenths of a second below ten seconds, else whole seconds. */
function formatDuration({ language }: Texts, durationMs: number): string {
  const seconds = durationMs / 1_000
  const digits = seconds < 10 ? 1 : 0
  return new Intl.NumberFormat(language, {
    style: 'unit',
    unit: 'second',
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(seconds)
}

/** The customer is at the third party, in this tab before, or in a popup of the frame now. */
export function waitingPage(
  frame: PageFrame,
  model: {
    action: string
    statusPath: string
    revision: string
    /** Address that opens the consent page in a popup, once; absent: the popup is opened anew. */
    popupPath: string | undefined
    callbackUri: string
    isPending: boolean
    alert: AlertModel | undefined
    backPath: string
    cancelPath: string
  },
): PageContent {
  const { texts } = frame
  const integration = frame.integration?.name ?? ''
  const kind = model.isPending ? 'pending' : 'waiting'
  return {
    title: texts.text(`${kind}.title`, { integration }),
    cancelPath: model.cancelPath,
    data: { step: 'consent', poll: model.statusPath, revision: model.revision, popup: model.popupPath },
    body: html`<p class="intro">${texts.text(model.isPending ? 'pending.intro' : frame.isFramed ? 'waiting.intro' : 'waiting.here.intro', { integration })}</p>
${alertBox(frame, model.alert)}<div class="body stack">
<p class="note" role="status" hidden data-blocked>${texts.text('waiting.blocked')} <a href="/connect/hop" target="_blank" rel="noreferrer">${texts.text('waiting.here')}</a></p>
${frame.isFramed && html`<p class="note" role="status" hidden data-closed>${texts.text('waiting.closed')}</p>\n`}<form method="post" action="${model.action}" data-guard data-hop>
<div class="actions"><button class="button primary" type="submit">${texts.text(frame.isFramed ? 'waiting.reopen' : 'consent.submit', { integration })}</button><a class="button secondary" href="${model.backPath}">${texts.text('page.back')}</a></div>
</form>
${redirectHint(texts, model.callbackUri, integration)}</div>`,
  }
}

/** A wrong redirect address ends on an error page of the third party, from which no browser comes back. */
function redirectHint(texts: Texts, callbackUri: string, integration: string): Html | false {
  if (callbackUri === '') return false
  return html`<details><summary>${texts.text('waiting.trouble', { integration })}</summary><p class="help">${texts.text('waiting.redirect')}</p><pre>${callbackUri}</pre></details>\n`
}
