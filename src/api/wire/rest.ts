import { type Failure, stringifyJson } from '../../base/index.ts'
import { sendResponse } from '../exchange.ts'
import { detailJson, failureDetails } from '../failure/details.ts'
import { restStatus } from '../failure/status.ts'
import { decodeJson, encodeJson } from '../message/codec.ts'
import { type RestRequest, requestJson } from '../rest/request-json.ts'
import { codingOf, decompress } from './compression.ts'
import { isJsonType, unsupportedMediaType } from './content-types.ts'
import type { Protocol, UnaryProtocol } from './wire.ts'

const JSON_TYPE = 'application/json'

/** How REST refuses, also where no operation was found. */
export const restErrors: Protocol = {
  name: 'rest',
  bodyBytesMax: (bytesMax) => bytesMax,
  decode() {
    throw new Error('nothing is decoded outside an operation')
  },
  sendError(exchange, failure) {
    sendResponse(exchange, restStatus(failure), JSON_TYPE, JSON.stringify({ error: restErrorJson(failure) }))
  },
}

/** REST for one request: the contract's `google.api.http` says which part of the message is where. */
export function createRestProtocol(request: RestRequest): UnaryProtocol {
  return {
    ...restErrors,
    async decode({ input }, { call }, body, bytesMax) {
      requireJson(call.requestHeader('content-type'), body)
      const bytes = await decompress(body, codingOf(call.requestHeader('content-encoding')), bytesMax)
      const { json, findings } = await requestJson(request, bytes, call)
      const draft = decodeJson(input, json)
      return { message: draft.message, findings: [...findings, ...draft.findings] }
    },
    async sendResult({ output }, exchange, result) {
      const json = encodeJson(output, result)
      if (typeof json.etag === 'string' && json.etag !== '') exchange.call.setHeader('etag', `"${json.etag}"`)
      const body = stringifyJson(json)
      sendResponse(exchange, 200, JSON_TYPE, typeof body === 'string' ? body : await body)
    },
  }
}

/** A failure as AIP-193 writes it, and beside it what the definition tells of it and what a third party answered. */
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

function requireJson(contentType: string | undefined, body: Buffer): void {
  if (body.length === 0 || isJsonType(contentType)) return
  throw unsupportedMediaType(contentType, 'send the body as application/json')
}
