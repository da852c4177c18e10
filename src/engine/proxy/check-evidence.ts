import { Failure } from '../../foundation/base/index.ts'
import { headerText } from '../../foundation/egress/index.ts'
import { getAtPath, isJsonObject, type Json, type JsonObject, parseDotPath } from '../../foundation/json/index.ts'
import type { MethodPlan } from '../definitions/plan.ts'
import {
  type AnswerPurpose,
  answerOutcome,
  type BodyClass,
  classOfNoBody,
  classOfText,
} from '../formats/response/answer-outcome.ts'
import type { DecodedResponse } from './decode-response.ts'
import type { ErrorAction } from './outcome.ts'

/** Why an answer in which no error was found is none: the error that it is instead. */
export interface MissingEvidence {
  readonly message: string
  readonly action: Extract<ErrorAction, 'fail' | 'retry'>
}

/**
 * Checks that an answer without an error says what was asked for, by the table of `answerOutcome`: what is not understood is no
 * success, and never an empty list.
 *
 * @param hasBody whether there was a body, which may be the JSON value null
 * @param url of the request
 * @returns `undefined` for a success
 * @throws Failure UPSTREAM_INVALID_RESPONSE where a part of the answer is missing, or it is not the API's
 */
export function findMissingEvidence(
  method: MethodPlan,
  response: DecodedResponse,
  hasBody: boolean,
  url: string,
): MissingEvidence | undefined {
  const purpose = purposeOf(method)
  const body = bodyClassOf(method, response, hasBody)
  switch (answerOutcome(response.status, body, purpose, method.answers)) {
    case 'success':
      return purpose === 'passed_on' ? undefined : findErrorList(response.body)
    case 'empty':
      return undefined
    case 'not_yet':
      return { message: 'it accepted the request and has no result yet', action: 'retry' }
    case 'transient_error':
      throw new Failure('UPSTREAM_INVALID_RESPONSE', transientMessage(response, body))
    case 'permanent_error':
      return { message: permanentMessage(method, response, body, url), action: 'fail' }
  }
}

const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,64}/

function mediaTypeOf(headers: DecodedResponse['headers']): string {
  return MEDIA_TYPE.exec(headers['content-type'] ?? '')?.[0] ?? 'no content type'
}

/** Names of the requests that prove a credential, in plans without a resource. */
const PROOFS: ReadonlySet<string> = new Set(['verification', 'identity'])

function purposeOf({ resource, method, isList, isWrite, verb }: MethodPlan): AnswerPurpose {
  if (resource === '') return PROOFS.has(method) ? 'verification' : 'passed_on'
  if (isWrite || verb === 'DELETE') return 'write'
  return isList ? 'list' : 'get'
}

function bodyClassOf(
  { verb, responseFormat }: MethodPlan,
  { headers, body }: DecodedResponse,
  hasBody: boolean,
): BodyClass {
  const contentType = headers['content-type'] ?? ''
  if (!hasBody) return classOfNoBody(verb, responseFormat?.format, contentType)
  return responseFormat === undefined && typeof body === 'string' ? classOfText(contentType, body) : 'readable'
}

function transientMessage({ status, headers }: DecodedResponse, body: BodyClass): string {
  if (body === 'web_page')
    return `the upstream answered ${status} with text (${mediaTypeOf(headers)}), a web page, where the answer of an API is expected; where it is meant, set response_format to text`
  const type = headers['content-type'] === undefined ? 'a result' : 'JSON or XML'
  return `the upstream answered ${status} without a body where ${type} is expected; where that is meant, set allow_empty_body`
}

function permanentMessage(
  { verb }: MethodPlan,
  { status, headers }: DecodedResponse,
  body: BodyClass,
  url: string,
): string {
  if (status < 300 && body === 'web_page') return 'it answered with a web page where the answer of an API is expected'
  if (status === 304) return 'it answered that nothing has changed, which proves no credential'
  const { location } = headers
  if (location === undefined) return 'it redirects without a target'
  const target = URL.parse(headerText(location), url)
  const shown = target === null ? 'no valid URL' : `${target.origin}${target.pathname}`
  return `it redirects to ${shown}, which is not followed for ${verb}; correct the address in the definition`
}

/** Members of a GraphQL response (GraphQL specification §7.1). */
const GRAPHQL_MEMBERS: ReadonlySet<string> = new Set(['data', 'errors', 'extensions'])
/** Codes and texts of errors that pass. */
const PASSING = /throttl|rate.?limit|too.?many|time.?out|timed.?out|unavailable|internal|try.?again|temporar/i
const CODE_PATHS = ['extensions.code', 'type', 'code', 'message'].map(parseDotPath)

/** The error of a GraphQL response that has errors and no data, whatever its status. */
function findErrorList(body: Json): MissingEvidence | undefined {
  if (!isJsonObject(body) || (body.data ?? null) !== null) return undefined
  const [first] = listErrors(body)
  if (first === undefined || Object.keys(body).some((key) => !GRAPHQL_MEMBERS.has(key))) return undefined
  const texts = CODE_PATHS.map((path) => getAtPath(first, path)).filter((text) => typeof text === 'string')
  const message = typeof first.message === 'string' ? first.message : 'it answered with errors and no data'
  return { message, action: texts.some((text) => PASSING.test(text)) ? 'retry' : 'fail' }
}

function listErrors({ errors }: JsonObject): readonly JsonObject[] {
  return Array.isArray(errors) ? errors.filter(isJsonObject) : []
}

const ERROR_TEXT_PATHS = [
  'error.message',
  'errors[0].message',
  'error_description',
  'message',
  'error',
  'errors[0]',
].map(parseDotPath)

/**
 * The error that a body names instead of what `response_path` selects: a truthy `error`, `errors` or `ok: false`. Nothing there without
 * such a member is an empty list, because many APIs leave an empty list out.
 */
export function findErrorInPlaceOfResult(body: Json): string | undefined {
  if (!isJsonObject(body)) return undefined
  const { error = null, errors = null, ok, success } = body
  const isNamed = isNamedError(error) || isNamedError(errors) || ok === false || success === false
  if (!isNamed) return undefined
  const text = ERROR_TEXT_PATHS.map((path) => getAtPath(body, path)).find(
    (each) => typeof each === 'string' && each !== '',
  )
  return typeof text === 'string' ? text : 'an error without a message'
}

function isNamedError(value: Json): boolean {
  if (Array.isArray(value)) return value.length > 0
  return isJsonObject(value)
    ? Object.keys(value).length > 0
    : value === true || (typeof value === 'string' && value !== '')
}
