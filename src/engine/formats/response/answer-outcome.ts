import { isTransientStatus } from '../../../foundation/egress/index.ts'

/**
 * What an answer is, in which no error was found: positive evidence of a result, nothing that is meant so, or neither.
 *
 * - `success`: its body is the result. `empty`: there is no body, and none is expected.
 * - `not_yet`: the third party still works on it; to be asked for again.
 * - `transient_error`: part of the answer is missing, or it is not the API's; another attempt may get it.
 * - `permanent_error`: the same request is answered the same way.
 */
export type AnswerOutcome = 'success' | 'empty' | 'not_yet' | 'transient_error' | 'permanent_error'

/** Statuses that mean the same here. 1xx does not arrive. */
type StatusClass = 'ok' | 'accepted' | 'no_content' | 'not_modified' | 'redirect' | 'transient_error' | 'error'

/**
 * What arrived as the body: nothing where the format has no empty text (JSON, XML), where no type is announced, or where an empty
 * text is valid (CSV, NDJSON, text, bytes, any answer to HEAD); content that could be read; a page for people.
 */
export const BODY_CLASSES = ['none_of_json', 'none_untyped', 'none_of_text', 'readable', 'web_page'] as const

export type BodyClass = (typeof BODY_CLASSES)[number]

/**
 * What the answer is for: a page of a list; a result; the acknowledgement of a change; the proof that a credential works; or a caller
 * who asked for this very answer (`/custom`) and gets its status too.
 */
export const ANSWER_PURPOSES = ['list', 'get', 'write', 'verification', 'passed_on'] as const

export type AnswerPurpose = (typeof ANSWER_PURPOSES)[number]

/** Outcomes in the order of `ANSWER_PURPOSES`. */
type Row = readonly [AnswerOutcome, AnswerOutcome, AnswerOutcome, AnswerOutcome, AnswerOutcome]

const PERMANENT: Row = ['permanent_error', 'permanent_error', 'permanent_error', 'permanent_error', 'permanent_error']
const TRANSIENT: Row = ['transient_error', 'transient_error', 'transient_error', 'transient_error', 'transient_error']
const EMPTY: Row = ['empty', 'empty', 'empty', 'empty', 'empty']
const SUCCESS: Row = ['success', 'success', 'success', 'success', 'success']
const NOT_YET: Row = ['not_yet', 'not_yet', 'empty', 'not_yet', 'empty']
/** A login, maintenance or firewall page instead of the API. */
const WEB_PAGE: Row = ['transient_error', 'transient_error', 'transient_error', 'permanent_error', 'success']
const REDIRECT: Row = ['permanent_error', 'permanent_error', 'permanent_error', 'permanent_error', 'success']
/** A 304 answers no question that was asked: requests are not conditional. */
const NOT_MODIFIED: Row = ['empty', 'empty', 'empty', 'permanent_error', 'empty']

/** The table. A change (`write`) was acknowledged by the status, so it may lack its body: many APIs answer DELETE so. */
const ANSWERS: { readonly [Status in StatusClass]: { readonly [Body in BodyClass]: Row } } = {
  ok: {
    none_of_json: ['transient_error', 'transient_error', 'empty', 'transient_error', 'empty'],
    none_untyped: ['transient_error', 'empty', 'empty', 'empty', 'empty'],
    none_of_text: EMPTY,
    readable: SUCCESS,
    web_page: WEB_PAGE,
  },
  accepted: {
    none_of_json: NOT_YET,
    none_untyped: NOT_YET,
    none_of_text: NOT_YET,
    readable: ['not_yet', 'not_yet', 'success', 'not_yet', 'success'],
    web_page: WEB_PAGE,
  },
  no_content: everyBody(EMPTY),
  not_modified: everyBody(NOT_MODIFIED),
  redirect: everyBody(REDIRECT),
  transient_error: everyBody(TRANSIENT),
  error: everyBody(PERMANENT),
}

function everyBody(row: Row): { readonly [Body in BodyClass]: Row } {
  return { none_of_json: row, none_untyped: row, none_of_text: row, readable: row, web_page: row }
}

/** What a definition says of its answers. */
export interface AnswerRules {
  /** An answer without a body is a success. */
  readonly isEmptyAllowed: boolean
  /** 202 is a success, as 200 is. */
  readonly isAcceptedFinal: boolean
}

/** The outcome of an answer by the table. @param purpose what the request was sent for */
export function answerOutcome(
  status: number,
  body: BodyClass,
  purpose: AnswerPurpose,
  { isEmptyAllowed, isAcceptedFinal }: AnswerRules,
): AnswerOutcome {
  const given = statusClass(status)
  const row = ANSWERS[given === 'accepted' && isAcceptedFinal ? 'ok' : given][bodyClassOf(body, isEmptyAllowed)]
  return row[ANSWER_PURPOSES.indexOf(purpose)] ?? 'permanent_error'
}

function bodyClassOf(body: BodyClass, isEmptyAllowed: boolean): BodyClass {
  return isEmptyAllowed && (body === 'none_of_json' || body === 'none_untyped') ? 'none_of_text' : body
}

/** Server errors that another attempt does not change: method or version is not known. */
const PERMANENT_SERVER_ERRORS: ReadonlySet<number> = new Set([501, 505])

function statusClass(status: number): StatusClass {
  if (status === 202) return 'accepted'
  if (status === 204 || status === 205) return 'no_content'
  if (status === 304) return 'not_modified'
  if (status < 300) return 'ok'
  if (status < 400) return 'redirect'
  return isTransientStatus(status) && !PERMANENT_SERVER_ERRORS.has(status) ? 'transient_error' : 'error'
}

const JSON_TYPE = /^(?:application|text)\/(?:[\w.+-]+\+)?json\b/i
const XML_TYPE = /^(?:application|text)\/(?:[\w.+-]+\+)?xml\b/i
const WEB_PAGE_TYPE = /^(?:text\/html|application\/xhtml\+xml)\b/i
const MARKUP_START = /^[\uFEFF\s]*</
const WEB_PAGE_START = /^[\uFEFF\s]*<(?:!doctype\s+html|html)[\s>]/i
/** Formats of a definition that have no empty text. */
const NEVER_EMPTY: ReadonlySet<string> = new Set(['json', 'xml'])

/** Whether a content type is JSON or `+json`. */
export function isJsonType(contentType: string): boolean {
  return JSON_TYPE.test(contentType)
}

/** The class of a body that was not sent. @param format that the definition names; the content type counts without one */
export function classOfNoBody(verb: string, format: string | undefined, contentType: string): BodyClass {
  if (verb === 'HEAD') return WEB_PAGE_TYPE.test(contentType) ? 'web_page' : 'none_of_text'
  if (format !== undefined) return NEVER_EMPTY.has(format) ? 'none_of_json' : 'none_of_text'
  if (contentType === '') return 'none_untyped'
  if (isJsonType(contentType) || XML_TYPE.test(contentType)) return 'none_of_json'
  return WEB_PAGE_TYPE.test(contentType) ? 'none_untyped' : 'none_of_text'
}

/** The class of a text that was read in no format of the definition. */
export function classOfText(contentType: string, text: string): BodyClass {
  const isPage = WEB_PAGE_START.test(text) || (WEB_PAGE_TYPE.test(contentType) && MARKUP_START.test(text))
  return isPage ? 'web_page' : 'readable'
}
