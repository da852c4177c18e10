import { type DescMethod, getOption, hasOption } from '@bufbuild/protobuf'
import { http as httpRule } from '../../../gen/google/api/annotations_pb.ts'
import type { HttpRule } from '../../../gen/google/api/http_pb.ts'
import { type Failure, stringifyJson } from '../../base/index.ts'
import { sendResponse } from '../exchange.ts'
import { decodeJson, encodeJson } from '../messages/codec.ts'
import type { Operation, UnaryOperation } from '../operation.ts'
import { codingOf, decompress } from '../pipeline/compression.ts'
import { detailJson, failureDetails, restStatus } from '../pipeline/errors.ts'
import { isJsonType, unsupportedMediaType } from '../pipeline/media-type.ts'
import type { Protocol, UnaryProtocol } from '../pipeline/protocol.ts'
import { fieldsAt, isPathVariable, type RestRequest, requestJson } from './request.ts'
import { PathRouter, parsePathTemplate } from './router.ts'

const JSON_TYPE = 'application/json'

/** Errors in the form of REST, also where no operation was found. */
export const restErrors: Protocol = {
  name: 'rest',
  sendError(exchange, failure) {
    sendResponse(exchange, restStatus(failure), JSON_TYPE, JSON.stringify({ error: restErrorJson(failure) }))
  },
}

/** REST for one request: the contract's `google.api.http` says which part of the message is where. */
export function createRestProtocol(request: RestRequest): UnaryProtocol {
  return {
    ...restErrors,
    bodyBytesMax: (bytesMax) => bytesMax,
    async decode({ input }, { context }, body, bytesMax) {
      assertJsonType(context.header('content-type'), body)
      const bytes = await decompress(body, codingOf(context.header('content-encoding')), bytesMax)
      const { json, findings } = await requestJson(request, bytes, context)
      const decoded = decodeJson(input, json)
      return { message: decoded.message, findings: [...findings, ...decoded.findings] }
    },
    async sendResult({ output }, exchange, result) {
      const json = encodeJson(output, result)
      if (typeof json.etag === 'string' && json.etag !== '') exchange.context.setHeader('etag', `"${json.etag}"`)
      const body = stringifyJson(json)
      sendResponse(exchange, 200, JSON_TYPE, typeof body === 'string' ? body : await body)
    },
  }
}

/** A failure as in AIP-193, with the members `result` (from the definition) and `raw` (the upstream's answer) beside it. */
function restErrorJson(failure: Failure): Record<string, unknown> {
  return {
    code: restStatus(failure),
    status: failure.code,
    message: failure.publicMessage,
    details: failureDetails(failure).map((detail) => ({
      '@type': `type.googleapis.com/${detail.desc.typeName}`,
      ...(detailJson(detail) as object),
    })),
    ...(failure.result === undefined ? {} : { result: failure.result }),
    ...(failure.raw === undefined ? {} : { raw: failure.raw }),
  }
}

function assertJsonType(contentType: string | undefined, body: Buffer): void {
  if (body.length === 0 || isJsonType(contentType)) return
  throw unsupportedMediaType(contentType, 'send the body as application/json')
}

/** One REST form of an operation. */
export interface RestBinding {
  readonly operation: UnaryOperation
  /** What the body holds: the whole request, one field of it, or nothing. */
  readonly body: { readonly kind: 'request' | 'none' } | { readonly kind: 'field'; readonly name: string }
  /** The contract's pattern, for metrics. */
  readonly pattern: string
}

/** The REST routes of every unary operation, as `google.api.http` in the contract lays them down. */
export function createRestRouter(operations: Iterable<Operation>): PathRouter<RestBinding> {
  const router = new PathRouter<RestBinding>()
  for (const operation of operations) {
    if (operation.kind !== 'unary' || !hasOption(operation.method, httpRule)) continue
    const rule = getOption(operation.method, httpRule)
    for (const form of [rule, ...rule.additionalBindings]) addForm(router, operation, form)
  }
  return router
}

function addForm(router: PathRouter<RestBinding>, operation: UnaryOperation, rule: HttpRule): void {
  const { verb, pattern } = verbAndPattern(rule, operation.method)
  if (rule.responseBody !== '') throw new Error(`${pattern}: response_body is not served`)
  const template = parsePathTemplate(pattern)
  for (const { fieldPath } of template.variables)
    if (!isPathVariable(fieldsAt(operation.input, fieldPath)?.at(-1)))
      throw new Error(`${pattern}: ${fieldPath.join('.')} is no field that a path can hold`)
  router.add(verb, template, { operation, body: bodyOf(rule, operation), pattern })
}

function verbAndPattern(
  { pattern }: HttpRule,
  method: DescMethod,
): { readonly verb: string; readonly pattern: string } {
  if (pattern.case === undefined) throw new Error(`${method.name}: a REST binding without a path`)
  if (pattern.case === 'custom') return { verb: pattern.value.kind, pattern: pattern.value.path }
  return { verb: pattern.case.toUpperCase(), pattern: pattern.value }
}

function bodyOf({ body }: HttpRule, { input }: UnaryOperation): RestBinding['body'] {
  if (body === '') return { kind: 'none' }
  if (body === '*') return { kind: 'request' }
  if (fieldsAt(input, [body]) === undefined) throw new Error(`${input.typeName}: no field ${body} for the body`)
  return { kind: 'field', name: body }
}
