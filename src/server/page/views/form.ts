import type { FormField } from '../../../engine/formats/index.ts'
import type { Violation } from '../../../foundation/base/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import { type Html, html } from '../html.ts'
import type { Texts } from '../texts.ts'
import { inputId, renderField, violationText } from './fields.ts'
import { brandedText, detailsOf, type PageContent, type PageFrame } from './layout.ts'
import { TERMS_ID, type TermsModel, termsField } from './terms.ts'

/** A form and what the customer has entered in it. */
export interface FormModel {
  readonly action: string
  readonly fields: readonly FormField[]
  /** By field name, without secrets. */
  readonly values: JsonObject
  readonly violations: readonly Violation[]
  /** Of the last attempt. */
  readonly alert: AlertModel | undefined
  /** To be accepted with it; absent: none. */
  readonly terms?: TermsModel | undefined
  readonly cancelPath: string
  readonly backPath: string | undefined
}

/** An error of a step, in words for the customer. */
export interface AlertModel {
  readonly title: string
  readonly advice: string
  /** What the third party said. */
  readonly details: string | undefined
  /** A decision that the customer may take instead of trying again. */
  readonly action?: { readonly path: string; readonly label: string } | undefined
}

/** The form with the credentials of an account. */
export function credentialsPage(
  frame: PageFrame,
  model: FormModel & ConnectionNotes & { readonly hasConsent: boolean; readonly isReconnect: boolean },
): PageContent {
  const { texts } = frame
  const integration = frame.integration?.name ?? ''
  const intro = model.hasConsent
    ? texts.text('form.intro.oauth', { integration })
    : brandedText(frame, { plain: 'form.intro', branded: 'form.intro.brand' }, { integration })
  const submit = model.hasConsent ? texts.text('consent.submit', { integration }) : texts.text('form.submit')
  return {
    title: texts.text(model.isReconnect ? 'form.title.reconnect' : 'form.title', { integration }),
    backPath: model.backPath,
    cancelPath: model.cancelPath,
    data: { step: 'form' },
    body: html`<p class="intro">${intro}</p>
${notesOf(frame, model)}${problemsOf(frame, model)}<form class="body" method="post" action="${model.action}" novalidate data-guard${model.hasConsent && html` data-hop`}>
${renderFields(texts, model)}
${termsField(frame, model.terms)}${submitActions(texts, submit, model.backPath)}
</form>`,
  }
}

/** What a customer has to know about a connection before it is made. */
interface ConnectionNotes {
  readonly isSandbox: boolean
  readonly isBeta: boolean
}

function notesOf({ texts, integration }: PageFrame, { isSandbox, isBeta }: ConnectionNotes): readonly (Html | false)[] {
  const parameters = { integration: integration?.name ?? '' }
  return [
    isBeta && html`<p class="note">${texts.text('page.beta', parameters)}</p>\n`,
    isSandbox && html`<p class="note">${texts.text('page.sandbox', parameters)}</p>\n`,
  ]
}

/** The summary of what is wrong, which gets the focus, or the error of the last attempt. */
export function problemsOf(frame: PageFrame, { fields, violations, terms, alert }: FormModel): Html | false {
  const { texts } = frame
  const items: readonly Html[] = [
    ...violations.map((violation) => problemItem(texts, fields, violation)),
    ...(terms?.isMissing === true ? [html`<li><a href="#${TERMS_ID}">${texts.text('violation.terms')}</a></li>`] : []),
  ]
  return items.length === 0 ? alertBox(frame, alert) : problemSummary(texts, items)
}

/** The script takes items from it whose fields were changed, and counts the others. */
function problemSummary(texts: Texts, items: readonly Html[]): Html {
  return html`<div class="alert" role="alert" tabindex="-1" data-focus><h2 data-one="${texts.text('errors.summary.one')}" data-other="${texts.text('errors.summary.other')}">${texts.plural('errors.summary', items.length)}</h2><ul>${items}</ul></div>\n`
}

function problemItem(texts: Texts, fields: readonly FormField[], violation: Violation): Html {
  const field = fields.find(({ name }) => name === violation.field)
  if (field === undefined) return html`<li>${violation.field}: ${violation.description}</li>`
  const text = violationText(texts, field, violation.rule, violation.description)
  return html`<li><a href="#${inputId(field.name)}">${field.label}</a>: ${text}</li>`
}

/** An error with its advice, and what the third party said. */
export function alertBox(frame: PageFrame, alert: AlertModel | undefined): Html | false {
  if (alert === undefined) return false
  const { title, advice, details, action } = alert
  const decision =
    action !== undefined &&
    html`<form method="post" action="${action.path}" data-guard><p><button class="button secondary" type="submit">${action.label}</button></p></form>`
  return html`<div class="alert" role="alert" tabindex="-1" data-focus><h2>${title}</h2><p>${advice}</p>${detailsOf(frame.texts, details, frame.integration)}${decision}</div>\n`
}

/** Every field that is shown, with its value and its problem. */
function renderFields(texts: Texts, { fields, values, violations, alert }: FormModel): Html {
  const isRepeated = violations.length > 0 || alert !== undefined
  const shown = fields.filter(({ isHidden }) => !isHidden)
  return html`<div class="stack">${shown.map((field) => {
    const violation = violations.find((each) => each.field === field.name)
    return renderField(texts, field, {
      value: values[field.name],
      problem: violation && violationText(texts, field, violation.rule, violation.description),
      isCleared: isRepeated && field.isSecret && violation === undefined,
    })
  })}</div>`
}

/** The button that submits, and the way back. */
export function submitActions(texts: Texts, submit: string, backPath: string | undefined): Html {
  const back =
    backPath !== undefined && html`<a class="button secondary" href="${backPath}">${texts.text('page.back')}</a>`
  return html`<div class="actions"><button class="button primary" type="submit">${submit}</button>${back}</div>`
}

/** What a customer sees before signing in at the third party when there is nothing to fill in, or while that is under way. */
export interface ConsentModel extends ConnectionNotes {
  readonly action: string
  /** All that will be requested. */
  readonly scopes: readonly string[]
  /** To be accepted with it; absent: none. */
  readonly terms?: TermsModel | undefined
  readonly alert: AlertModel | undefined
  readonly cancelPath: string
  readonly backPath: string | undefined
}

const NO_FIELDS = { fields: [], values: {}, violations: [] }

/** The last step before the third party's consent page. */
export function consentPage(frame: PageFrame, model: ConsentModel): PageContent {
  const { texts } = frame
  const integration = frame.integration?.name ?? ''
  return {
    title: texts.text('consent.title', { integration }),
    cancelPath: model.cancelPath,
    backPath: model.backPath,
    data: { step: 'consent' },
    body: html`<p class="intro">${brandedText(frame, { plain: 'consent.intro', branded: 'consent.intro.brand' }, { integration })}</p>
${notesOf(frame, model)}${problemsOf(frame, { ...model, ...NO_FIELDS })}${scopeList(texts, model.scopes)}<form class="body" method="post" action="${model.action}" novalidate data-guard data-hop>
${frame.isFramed && html`<p class="note">${texts.text('consent.popup')}</p>`}
${termsField(frame, model.terms)}${submitActions(texts, texts.text('consent.submit', { integration }), model.backPath)}
</form>`,
  }
}

function scopeList(texts: Texts, scopes: readonly string[]): Html | false {
  if (scopes.length === 0) return false
  const items = scopes.map((scope) => html`<li><code>${scope}</code></li>`)
  return html`<details><summary>${texts.plural('consent.scopes', scopes.length)}</summary><ul>${items}</ul></details>\n`
}

/** Asks before a popup continues a session that this browser may not have begun. */
export function hopQuestionPage(frame: PageFrame, ticket: string): PageContent {
  const { texts } = frame
  const integration = frame.integration?.name ?? ''
  return {
    title: texts.text('consent.title', { integration }),
    data: { step: 'consent' },
    body: html`<p class="intro">${brandedText(frame, { plain: 'consent.intro', branded: 'consent.intro.brand' }, { integration })}</p>
<form class="body" method="post" action="/connect/hop" data-guard><input type="hidden" name="ticket" value="${ticket}">
${submitActions(texts, texts.text('consent.submit', { integration }), undefined)}
</form>`,
  }
}

/** Leaves for the third party: by a link, because a redirect of a form's answer to another site is blocked. */
export function hopPage(frame: PageFrame, url: string): PageContent {
  const { texts } = frame
  const integration = frame.integration?.name ?? ''
  return {
    title: texts.text('consent.title', { integration }),
    data: { step: 'consent', continue: url },
    body: html`<p class="intro" role="status">${texts.text('consent.moving', { integration })}</p>
<p class="actions"><a class="button primary" href="${url}" rel="noreferrer">${texts.text('consent.submit', { integration })}</a></p>`,
  }
}
