import { getOption, hasOption } from '@bufbuild/protobuf'
import { http as httpRule } from '../../../../gen/google/api/annotations_pb.ts'
import type { HttpRule } from '../../../../gen/google/api/http_pb.ts'
import { codingOf, decompress, type Failure } from '../../../foundation/base/index.ts'
import { stringifyJson } from '../../../foundation/json/index.ts'
import type { Protocol } from '../exchange.ts'
import { sendResponse } from '../exchange.ts'
import { decodeJson, encodeJson } from '../messages/codec.ts'
import { fieldNamed } from '../messages/json-shape.ts'
import type { Operation, UnaryOperation } from '../operation.ts'
import { detailJson, failureDetails, restStatus } from '../pipeline/errors.ts'
import { isJsonType, unsupportedMediaType } from '../pipeline/media-type.ts'
import type { UnaryProtocol } from '../pipeline/protocol.ts'
import { isPathVariable, type RestBinding, type RestRequest, requestJson } from './request.ts'
import { PathRouter, parsePathPattern } from './router.ts'

const JSON_TYPE = 'application/json'

/** Errors in the form of REST, also where no operation was found. */
export const restErrors: Protocol = {
  name: 'rest',
  sendError(exchange, failure) {
    sendResponse(exchange, restStatus(failure), JSON_TYPE, JSON.stringify({ error: restErrorJson(failure) }))
  },
}

/** REST for one request: `google.api.http` of the contract says which fields are in path, query and body. */
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

/**
 * The REST routes of every unary operation, as `google.api.http` in the contract says.
 *
 * @throws Error when the server starts, for a form of `google.api.http` that is not served
 */
export function createRestRouter(operations: Iterable<Operation>): PathRouter<RestBinding> {
  const router = new PathRouter<RestBinding>()
  for (const operation of operations)
    if (operation.kind === 'unary' && hasOption(operation.method, httpRule))
      addRoute(router, operation, getOption(operation.method, httpRule))
  return router
}

function addRoute(router: PathRouter<RestBinding>, operation: UnaryOperation, rule: HttpRule): void {
  const { pattern, body, responseBody, additionalBindings } = rule
  if (pattern.case === undefined || pattern.case === 'custom')
    throw unsupportedRule(operation, 'its pattern has none of the verbs GET, PUT, POST, DELETE and PATCH')
  if (body !== '' && body !== '*') throw unsupportedRule(operation, 'its body is one field; "*" and none are served')
  if (responseBody !== '') throw unsupportedRule(operation, 'it has a response_body')
  if (additionalBindings.length > 0) throw unsupportedRule(operation, 'it has additional_bindings')
  const path = parsePathPattern(pattern.value)
  for (const segment of path)
    if (segment.kind === 'variable' && !isPathVariable(fieldNamed(operation.input, segment.field)))
      throw unsupportedRule(operation, `${segment.field} is no field that a path can hold`)
  router.add(pattern.case.toUpperCase(), path, { operation, hasBody: body === '*' })
}

function unsupportedRule({ path }: UnaryOperation, why: string): Error {
  return new Error(`${path}: this google.api.http rule is not served: ${why}`)
}
