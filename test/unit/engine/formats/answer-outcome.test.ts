import { describe, expect, it } from 'vitest'
import {
  ANSWER_PURPOSES,
  type AnswerOutcome,
  answerOutcome,
  BODY_CLASSES,
  classOfNoBody,
  classOfText,
} from '../../../../src/engine/formats/response/answer-outcome.ts'

const STATUSES = [
  200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 307, 308, 400, 401, 404, 408, 410, 425, 429, 500, 501,
  502, 503, 504, 505,
]
const RULES = [false, true].flatMap((isEmptyAllowed) =>
  [false, true].map((isAcceptedFinal) => ({ isEmptyAllowed, isAcceptedFinal })),
)
const CELLS = STATUSES.flatMap((status) =>
  BODY_CLASSES.flatMap((body) =>
    ANSWER_PURPOSES.flatMap((purpose) =>
      RULES.map((rules) => ({ status, body, purpose, rules, outcome: answerOutcome(status, body, purpose, rules) })),
    ),
  ),
)
const cellsOf = (outcome: AnswerOutcome) => CELLS.filter((cell) => cell.outcome === outcome)

describe('every cell of the table', () => {
  it('is a success only of a 2xx with content that could be read, or for who asked for this very answer', () => {
    for (const { status, body, purpose } of cellsOf('success'))
      expect(purpose === 'passed_on' || (status < 300 && body === 'readable')).toBe(true)
  })

  it('is empty only where nothing was sent, without it being a part that is missing', () => {
    for (const { status, body, purpose, rules } of cellsOf('empty')) {
      const isMeant = [204, 205, 304].includes(status) || body === 'none_of_text' || rules.isEmptyAllowed
      const isAcknowledged = purpose === 'write' || purpose === 'passed_on'
      const isUntyped = body === 'none_untyped' && purpose !== 'list'
      expect(isMeant || isAcknowledged || isUntyped).toBe(true)
    }
  })

  it('of a redirect or an error is no result', () => {
    for (const { status, purpose, outcome } of CELLS)
      if (status >= 300 && status !== 304 && purpose !== 'passed_on') expect(outcome).toMatch(/_error$/)
  })

  it('of 202 is none yet, unless it answers a change or the definition says that it is one', () => {
    for (const { status, body, purpose, rules, outcome } of CELLS)
      if (status === 202 && body !== 'web_page') {
        const isFinal = rules.isAcceptedFinal || purpose === 'write' || purpose === 'passed_on'
        expect(outcome === 'not_yet').toBe(!isFinal)
      }
  })

  it('proves a credential by a 2xx of an API alone', () => {
    for (const { status, body, outcome } of CELLS.filter(({ purpose }) => purpose === 'verification'))
      if (outcome === 'success' || outcome === 'empty')
        expect(status < 300 && (body !== 'web_page' || status === 204 || status === 205)).toBe(true)
  })
})

describe('a body', () => {
  it.each([
    ['GET', undefined, 'application/json', 'none_of_json'],
    ['GET', undefined, 'application/vnd.api+json; charset=utf-8', 'none_of_json'],
    ['GET', undefined, 'text/json', 'none_of_json'],
    ['GET', undefined, 'application/xml', 'none_of_json'],
    ['GET', 'json', 'text/csv', 'none_of_json'],
    ['GET', 'csv', 'application/json', 'none_of_text'],
    ['GET', 'ndjson', '', 'none_of_text'],
    ['GET', undefined, 'application/x-ndjson', 'none_of_text'],
    ['GET', undefined, 'text/plain', 'none_of_text'],
    ['GET', undefined, 'text/html', 'none_untyped'],
    ['GET', undefined, '', 'none_untyped'],
    ['HEAD', undefined, 'application/json', 'none_of_text'],
    ['HEAD', undefined, 'text/html; charset=utf-8', 'web_page'],
  ])('that was not sent to %s in the format %s and type "%s" is %s', (verb, format, type, expected) => {
    expect(classOfNoBody(verb, format, type)).toBe(expected)
  })

  it.each([
    ['text/html', '<form action="/login">', 'web_page'],
    ['text/plain', '\uFEFF\n<!DOCTYPE html>', 'web_page'],
    ['', '<html>', 'web_page'],
    ['text/html', 'ok', 'readable'],
    ['text/plain', '<b>', 'readable'],
  ])('of type "%s" and text %j is %s', (type, text, expected) => {
    expect(classOfText(type, text)).toBe(expected)
  })
})
