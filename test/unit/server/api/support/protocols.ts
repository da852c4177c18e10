import { type DescMethodUnary, fromJson, type MessageShape, toJson } from '@bufbuild/protobuf'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node'
import type { JsonObject } from '../../../../../src/foundation/json/index.ts'
import { callErrorFromDetails } from '../../../../support/call-error.ts'
import { type CallOutcome, createClient } from '../../../../support/client.ts'
import { type HttpAnswer, http1, http2 } from './http.ts'

/** Sends one call; the request is JSON in the contract's spelling. */
export type Send = (
  method: DescMethodUnary,
  request: JsonObject,
  headers?: Readonly<Record<string, string>>,
) => Promise<CallOutcome>

/** One protocol on one HTTP version. */
export interface WireUnderTest {
  readonly name: string
  /** Carries JSON, so that it can send what no message could hold. */
  readonly isJson: boolean
  /** Answers carry an HTTP status of their own. */
  readonly hasStatus: boolean
  connect(baseUrl: string): { readonly send: Send; close(): void }
}

/** Every wire the API speaks. */
export const ALL_WIRES: readonly WireUnderTest[] = [
  foreign('gRPC (grpc-js)', 'grpc'),
  transported('gRPC (connect-node)', (baseUrl) => createGrpcTransport({ baseUrl })),
  transported('gRPC, gzip', (baseUrl) =>
    createGrpcTransport({ baseUrl, sendCompression: compressionGzip, compressMinBytes: 0 }),
  ),
  transported('gRPC with JSON', (baseUrl) => createGrpcTransport({ baseUrl, useBinaryFormat: false })),
  transported('gRPC-Web on HTTP/1.1', (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' })),
  transported('gRPC-Web on HTTP/2', (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: '2' })),
  transported('Connect, binary, HTTP/1.1', (baseUrl) =>
    createConnectTransport({ baseUrl, httpVersion: '1.1', useBinaryFormat: true }),
  ),
  transported('Connect, binary, HTTP/2', (baseUrl) =>
    createConnectTransport({ baseUrl, httpVersion: '2', useBinaryFormat: true }),
  ),
  connectJson('Connect, JSON, HTTP/1.1', http1),
  connectJson('Connect, JSON, HTTP/2', http2),
  foreign('REST', 'rest'),
]

/** The wires that carry JSON as the client wrote it. */
export const JSON_WIRES = ALL_WIRES.filter(({ isJson }) => isJson)

function foreign(name: string, wire: 'grpc' | 'rest'): WireUnderTest {
  return {
    name,
    isJson: wire === 'rest',
    hasStatus: wire === 'rest',
    connect(baseUrl) {
      const client = createClient(wire, baseUrl, {})
      return { send: (method, request, headers) => client.send(method, request, { headers }), close: client.close }
    },
  }
}

function connectJson(name: string, http: typeof http1): WireUnderTest {
  return {
    name,
    isJson: true,
    hasStatus: true,
    connect: (baseUrl) => ({
      async send(method, request, headers = {}) {
        const answer = await http(baseUrl, `/${method.parent.typeName}/${method.name}`, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body: JSON.stringify(request),
        })
        return connectOutcome(answer)
      },
      close: () => {},
    }),
  }
}

/** What a Connect answer says, as the other wires say it. */
export function connectOutcome({ status, json, headers }: HttpAnswer): CallOutcome {
  if (status === 200) return { ok: true, json, headers }
  const details = json.details as unknown as readonly { type: string; value: string }[]
  const error = callErrorFromDetails(
    String(json.code).toUpperCase().replace('CANCELED', 'CANCELLED'),
    String(json.message),
    details.map(({ type, value }) => ({ type, value: Buffer.from(value, 'base64') })),
    status,
  )
  return { ok: false, error, headers }
}

function transported(name: string, createTransport: (baseUrl: string) => Transport): WireUnderTest {
  return {
    name,
    isJson: false,
    hasStatus: false,
    connect(baseUrl) {
      const transport = createTransport(baseUrl)
      return {
        async send(method, request, headers = {}) {
          const input = fromJson(method.input, request as never)
          try {
            const { message, header } = await transport.unary(method, undefined, 15_000, headers, input as never)
            return { ok: true, json: jsonOf(method, message), headers: new Map(header) }
          } catch (error) {
            return refusedOutcome(ConnectError.from(error))
          }
        },
        close: () => {},
      }
    },
  }
}

/** A rejected call as connect-node's clients report it. */
export function refusedOutcome(error: ConnectError): CallOutcome {
  const code = Code[error.code].replace(/(?<=[a-z])[A-Z]/g, '_$&').toUpperCase()
  const details = error.details.flatMap((detail) => ('type' in detail ? [detail] : []))
  return {
    ok: false,
    error: callErrorFromDetails(code.replace('CANCELED', 'CANCELLED'), error.rawMessage, details),
    headers: new Map(error.metadata),
  }
}

function jsonOf(method: DescMethodUnary, message: MessageShape<typeof method.output>): JsonObject {
  return toJson(method.output, message, { useProtoFieldName: true, alwaysEmitImplicit: true }) as JsonObject
}
