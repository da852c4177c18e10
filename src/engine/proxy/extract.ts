import { Failure, truncateText } from '../../foundation/base/index.ts'
import { getAtPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { MethodPlan } from '../definitions/plan.ts'
import { findErrorInPlaceOfResult } from './check-evidence.ts'
import type { DecodedResponse } from './decode-response.ts'
import type { ExpressionEvaluator } from './dependencies.ts'
import { evaluateNamed } from './setting-expression.ts'

/**
 * The part of a body that `response_path` selects; `null` when there is nothing.
 *
 * JSONata sees the body as `$`; a body that is not an object is wrapped for it, so that `$.body` is always the body.
 *
 * @throws Failure EXPRESSION_FAILED
 */
export async function extractResult(
  evaluator: ExpressionEvaluator,
  { responsePath }: MethodPlan,
  body: Json,
): Promise<Json> {
  if (responsePath === undefined) return body
  if (responsePath.kind === 'path') return getAtPath(body, responsePath.steps) ?? null
  return (await evaluateNamed(evaluator, 'response_path', responsePath.text, expressionInput(body))) ?? null
}

/** The records of a response. */
export interface Extracted {
  readonly records: readonly Json[]
  /** The entries before the filter of `response_path`; absent without one. */
  readonly received: readonly Json[] | undefined
}

/**
 * The records of a list. Nothing is an empty list, a single object a list of one.
 *
 * @throws Failure EXPRESSION_FAILED; UPSTREAM_INVALID_RESPONSE for a text or another scalar where records are expected,
 * which is a login page or a maintenance notice more often than a record
 */
export async function extractRecords(
  evaluator: ExpressionEvaluator,
  method: MethodPlan,
  response: DecodedResponse,
): Promise<Extracted> {
  const { responsePath } = method
  const { body } = response
  assertBodyIsNoScalar(method, response, body)
  const result = await extractResult(evaluator, method, body)
  if (result === null && responsePath !== undefined) assertNoErrorInPlaceOfResult(response)
  if (method.isList) assertBodyIsNoScalar(method, response, result)
  const records = toRecords(result)
  if (responsePath?.kind !== 'expression' || responsePath.source === undefined) return { records, received: undefined }
  const source = await evaluateNamed(evaluator, 'response_path', responsePath.source, expressionInput(body))
  return { records, received: toRecords(source ?? null) }
}

/** Formats whose body is one text. */
const TEXT_FORMATS: ReadonlySet<string> = new Set(['text', 'binary'])
const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,64}/

function assertBodyIsNoScalar({ responseFormat }: MethodPlan, response: DecodedResponse, value: Json): void {
  if (!TEXT_FORMATS.has(responseFormat?.format ?? '')) assertNoScalar(response, value)
}

/** @throws Failure UPSTREAM_INVALID_RESPONSE for a body that names an error, and nothing under `response_path` */
function assertNoErrorInPlaceOfResult({ status, body }: DecodedResponse): void {
  const error = findErrorInPlaceOfResult(body)
  if (error === undefined) return
  const message = `the upstream answered ${status} with an error in place of records: ${truncateText(error, ERROR_LENGTH_MAX)}`
  throw new Failure('UPSTREAM_INVALID_RESPONSE', message)
}

const ERROR_LENGTH_MAX = 300

/** Asserts that a value can be records. @throws Failure UPSTREAM_INVALID_RESPONSE naming the content type */
export function assertNoScalar({ status, headers }: Omit<DecodedResponse, 'body'>, value: Json): void {
  if (value === null || value === '' || Array.isArray(value) || isJsonObject(value)) return
  const [contentType = 'no content type'] = MEDIA_TYPE.exec(headers['content-type'] ?? '') ?? []
  const what = typeof value === 'string' ? 'text' : `the value ${value}`
  throw new Failure(
    'UPSTREAM_INVALID_RESPONSE',
    `the upstream answered ${status} with ${what} (${contentType}) where records are expected; where text is meant, set response_format to text`,
    { metadata: { content_type: contentType } },
  )
}

/** The records of a result: nothing is an empty list, a single value a list of one. */
export function toRecords(result: Json): readonly Json[] {
  if (Array.isArray(result)) return result
  return result === null || result === '' ? [] : [result]
}

function expressionInput(body: Json): JsonObject {
  return isJsonObject(body) ? body : { body }
}
