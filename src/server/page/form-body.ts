import type { FormField } from '../../engine/formats/index.ts'
import { Failure } from '../../foundation/base/index.ts'
import { findUnstorableText, type Json, type JsonObject, parseJson } from '../../foundation/json/index.ts'
import type { HttpExchange } from '../api/http/routes.ts'
import { readBody } from '../api/pipeline/body.ts'
import { INPUT_PREFIX } from './views/fields.ts'

/** Largest body of a form. */
const BODY_BYTES_MAX = 64 * 1024
/** Most values of a form, each option of a list counted. */
const VALUES_MAX = 1_000
const FORM_TYPE = 'application/x-www-form-urlencoded'

/**
 * Reads a form that a browser sent.
 *
 * @throws Failure REQUEST_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, MALFORMED_BODY for more values than a page has, or for text
 *   that cannot be stored
 */
export async function readForm(exchange: HttpExchange): Promise<URLSearchParams> {
  const body = await readBody(exchange, exchange.server.limits, BODY_BYTES_MAX)
  const [type] = (exchange.context.header('content-type') ?? '').split(';')
  if (body.length > 0 && type?.trim().toLowerCase() !== FORM_TYPE)
    throw new Failure('UNSUPPORTED_MEDIA_TYPE', `forms are sent as ${FORM_TYPE}`)
  const form = new URLSearchParams(body.toString())
  if (form.size > VALUES_MAX) throw new Failure('MALFORMED_BODY', `a form has at most ${VALUES_MAX} values`)
  for (const [name, value] of form)
    if (findUnstorableText(`${name}${value}`, 'form').length > 0)
      throw new Failure('MALFORMED_BODY', 'the form contains text that cannot be stored')
  return form
}

/** The value of JSON text; undefined for any other text. */
export function tryParseJson(text: string): Json | undefined {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

/** The single values of a form; of a name that occurs more than once the first. */
export function singleValues(form: URLSearchParams): Readonly<Record<string, string>> {
  const values: Record<string, string> = Object.create(null)
  for (const [name, value] of form) values[name] ??= value
  return values
}

/** The values of a form's fields, each of the JSON type of its field; fields that the form does not show are absent. */
export function fieldValues(form: URLSearchParams, fields: readonly FormField[]): JsonObject {
  const values: Record<string, Json> = {}
  for (const { name, type, isHidden } of fields) {
    if (isHidden) continue
    const given = form.getAll(`${INPUT_PREFIX}${name}`)
    if (type === 'checkbox') values[name] = given.includes('true')
    else if (type === 'multi_select') values[name] = given
    // Browsers send line breaks of a text area as CRLF.
    else if (given[0] !== undefined) values[name] = given[0].replaceAll('\r\n', '\n')
  }
  return values
}
