import { type Html, html } from '../html.ts'
import { brandedText, externalLink, type PageFrame } from './layout.ts'

/** Terms of service that a customer has to accept before an account is connected. */
export interface TermsModel {
  readonly url: string
  readonly isChecked: boolean
  /** A form was submitted without them. */
  readonly isMissing: boolean
}

/** Name of the checkbox; its value is the address that is accepted, so that terms which changed meanwhile are asked for anew. */
export const TERMS_INPUT = 'terms'
/** Target of the link in the summary of problems. */
export const TERMS_ID = 'terms'

/** A checkbox with a link to the terms. Never checked in advance: accepting is an act of the customer. */
export function termsField(frame: PageFrame, terms: TermsModel | undefined): Html | false {
  if (terms === undefined) return false
  const { texts } = frame
  const sentence = brandedText(frame, { plain: 'terms.accept', branded: 'terms.accept.brand' })
  const [before = '', after = ''] = sentence.split('{terms}')
  const invalid = terms.isMissing && html` aria-invalid="true" aria-describedby="${TERMS_ID}-problem"`
  return html`<div class="field terms"><div class="check"><input type="checkbox" id="${TERMS_ID}" name="${TERMS_INPUT}" value="${terms.url}" required${terms.isChecked && html` checked`}${invalid}><label for="${TERMS_ID}">${before}${externalLink(texts, terms.url, texts.text('terms.link'))}${after}</label></div>${terms.isMissing && html`<p class="problem" id="${TERMS_ID}-problem">${texts.text('violation.terms')}</p>`}</div>
`
}
