import { createPrivateKey } from 'node:crypto'
import { isUuid, mustBeOneOf, type Violation } from '../../../foundation/base/index.ts'
import { type Json, JsonNumber, jsonNumberOf } from '../../../foundation/json/index.ts'
import { matchesPattern } from './field-pattern.ts'
import { type Field, isSecretField } from './fields.ts'

/** Longest text of a field, in UTF-16 units; private keys and service account files fit. */
export const VALUE_LENGTH_MAX = 16_384

/** The mask that responses show instead of a secret; never accepted as a value. */
const MASK = '***'

/** Rules that a value can break; the page has a text for each. */
export const FIELD_RULES = [
  'required',
  'type',
  'enum',
  'list.max_items',
  'secret_masked',
  'unknown_field',
  'string.max_len',
  'string.control',
  'string.header',
  'string.pattern',
  'string.email',
  'string.number',
  'string.uuid',
  'string.url',
  'string.hostname',
  'string.hostname_label',
  'string.tel',
  'string.date',
  'string.private_key',
  'number.min',
  'number.max',
] as const

type FieldRule = (typeof FIELD_RULES)[number]

/** Why a value is not accepted; the description is worded to follow the name of the field. */
export interface ValueProblem extends Omit<Violation, 'field'> {
  readonly rule: FieldRule
}

/**
 * The problem of a normalised value.
 *
 * @param value absent: not given, and the field has no default
 * @param isSentInHeader the value is sent in a header unchanged
 */
export function findValueProblem(
  field: Field,
  value: Json | undefined,
  isSentInHeader: boolean,
): ValueProblem | undefined {
  if (value === undefined) return field.required ? { description: 'is required', rule: 'required' } : undefined
  switch (field.type) {
    case 'checkbox':
      return findCheckboxProblem(field, value)
    case 'number':
      return findNumberProblem(field, value)
    case 'multi_select':
      return findMultiSelectProblem(field, value)
    default:
      return findTextProblem(field, value) ?? findHeaderProblem(value, isSentInHeader)
  }
}

function findCheckboxProblem({ required }: Field, value: Json): ValueProblem | undefined {
  if (typeof value !== 'boolean') return { description: 'must be true or false', rule: 'type' }
  return required && !value ? { description: 'must be checked', rule: 'required' } : undefined
}

/** Bounds are compared as doubles; the stored number is exact. */
function findNumberProblem({ min, max }: Field, value: Json): ValueProblem | undefined {
  if (typeof value !== 'number' && !(value instanceof JsonNumber))
    return { description: 'must be a number', rule: 'type' }
  if (min !== undefined && Number(value) < min) return { description: `must be at least ${min}`, rule: 'number.min' }
  if (max !== undefined && Number(value) > max) return { description: `must be at most ${max}`, rule: 'number.max' }
  return undefined
}

function findMultiSelectProblem({ options }: Field, value: Json): ValueProblem | undefined {
  const isTexts = Array.isArray(value) && value.every((item: Json) => typeof item === 'string')
  if (!isTexts) return { description: 'must be a list of texts', rule: 'type' }
  if (value.length > SELECTED_MAX)
    return { description: `must have at most ${SELECTED_MAX} entries`, rule: 'list.max_items' }
  for (const item of value as readonly string[]) {
    const problem = findOptionProblem(options, item)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Most choices of one `multi_select`. */
const SELECTED_MAX = 500

/** Longest id of an option that a third party provides. */
const OPTION_LENGTH_MAX = 512

/** @param options absent: they are known at the third party, which is asked when the value is used */
function findOptionProblem(options: Field['options'], value: string): ValueProblem | undefined {
  if (options !== undefined)
    return options.some((option) => option.value === value) ? undefined : notAnOption(options, value)
  if (value.length > OPTION_LENGTH_MAX)
    return { description: `must not be longer than ${OPTION_LENGTH_MAX} characters`, rule: 'string.max_len' }
  return findControlCharacter(value)
}

function findTextProblem(field: Field, value: Json): ValueProblem | undefined {
  if (typeof value !== 'string') return { description: 'must be a text', rule: 'type' }
  if (isSecretField(field) && value === MASK)
    return { description: 'is the mask of a secret, not the secret', rule: 'secret_masked' }
  if (value.length > VALUE_LENGTH_MAX)
    return { description: `must not be longer than ${VALUE_LENGTH_MAX} characters`, rule: 'string.max_len' }
  if (field.type === 'single_select') return findChoiceProblem(field, value)
  return findFormatProblem(field, value) ?? findPatternMismatch(field, value) ?? findControlCharacter(value)
}

/** Options of a third party are not at hand to compare with: a pattern says which ids there can be. */
function findChoiceProblem(field: Field, value: string): ValueProblem | undefined {
  const problem = findOptionProblem(field.options, value)
  return problem ?? (field.options === undefined ? findPatternMismatch(field, value) : undefined)
}

function notAnOption(options: NonNullable<Field['options']>, value: string): ValueProblem {
  const values = options.map((option) => option.value)
  return { description: mustBeOneOf(value, values), rule: 'enum' }
}

/** Control characters but line breaks and tabs, which occur in PEM keys. */
const CONTROL = /[^\P{Cc}\t\n\r]/u
/** Visible characters of Latin-1, blank and tab (RFC 9110 §5.5). */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

function findControlCharacter(value: string): ValueProblem | undefined {
  if (CONTROL.test(value)) return { description: 'must not hold control characters', rule: 'string.control' }
  return value.isWellFormed()
    ? undefined
    : { description: 'must not hold half of a surrogate pair', rule: 'string.control' }
}

function findHeaderProblem(value: Json, isSentInHeader: boolean): ValueProblem | undefined {
  if (!isSentInHeader || typeof value !== 'string' || HEADER_VALUE.test(value)) return undefined
  const description = /[\r\n]/.test(value)
    ? 'must not hold a line break, because it is sent in a header'
    : 'holds characters that no header can carry'
  return { description, rule: 'string.header' }
}

const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const HOSTNAME_LABEL = new RegExp(`^${LABEL}$`, 'i')
const HOSTNAME = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})+$`, 'i')

const FORMATS: Readonly<Record<NonNullable<Field['format']>, { test: (text: string) => boolean; noun: string }>> = {
  email: { test: (text) => /^[^\s@]{1,64}@[^\s@]{1,255}$/.test(text), noun: 'an e-mail address' },
  number: { test: (text) => /^[+-]?\d{1,300}(?:\.\d{1,300})?$/.test(text), noun: 'a number' },
  uuid: { test: isUuid, noun: 'a UUID' },
  url: { test: (text) => /^https?:\/\//i.test(text) && URL.canParse(text), noun: 'an http or https URL' },
  hostname: { test: (text) => HOSTNAME.test(text), noun: 'a host name such as acme.example.com' },
  hostname_label: {
    test: (text) => HOSTNAME_LABEL.test(text),
    noun: 'one label of a host name: letters, digits and "-"',
  },
  tel: { test: (text) => /^\+?\d{4,15}$/.test(text), noun: 'a telephone number' },
  date: { test: isCalendarDate, noun: 'a date such as 2030-12-31' },
  private_key: {
    test: isReadableKey,
    noun: 'a private key that can be read: the whole block from BEGIN to END, without a passphrase',
  },
}

function isReadableKey(text: string): boolean {
  try {
    createPrivateKey(text)
    return true
  } catch {
    return false
  }
}

function isCalendarDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const date = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
}

function findFormatProblem({ format }: Field, value: string): ValueProblem | undefined {
  if (format === undefined || FORMATS[format].test(value)) return undefined
  return { description: `must be ${FORMATS[format].noun}`, rule: `string.${format}` }
}

function findPatternMismatch({ pattern, pattern_message }: Field, value: string): ValueProblem | undefined {
  if (pattern === undefined || matchesPattern(pattern, value)) return undefined
  return { description: pattern_message ?? `must match ${pattern}`, rule: 'string.pattern' }
}

/** A number as JSON writes it, after an optional plus sign and leading zeros. */
const NUMBER = /^\+?(-?)0*(\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?)$/

/** The JSON number that a text is, with all its digits; `undefined` when it is none. */
export function parseNumber(text: string): number | JsonNumber | undefined {
  const [, sign = '', digits] = NUMBER.exec(text) ?? []
  return digits === undefined ? undefined : jsonNumberOf(`${sign}${digits}`)
}
