import { type DescMessage, fromBinary, fromJson, type MessageShape } from '@bufbuild/protobuf'
import {
  BadRequestSchema,
  ErrorInfoSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from '../../gen/google/rpc/error_details_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'

/** The error of a call, in one shape for all protocols. */
export interface CallError {
  /** The name of the gRPC code, such as `NOT_FOUND`. */
  readonly code: string
  readonly message: string
  /** Of the one ErrorInfo; undefined when there was none, or more. */
  readonly reason: string | undefined
  readonly domain: string | undefined
  readonly metadata: Readonly<Record<string, string>>
  readonly violations: readonly { readonly field: string; readonly description: string; readonly rule: string }[]
  readonly resource: { readonly type: string; readonly id: string } | undefined
  readonly retryAfterSeconds: number | undefined
  /** Undefined over gRPC. */
  readonly httpStatus: number | undefined
}

/** A detail of an error: binary over gRPC and Connect, JSON over REST. */
interface Detail {
  readonly type: string
  readonly value: Uint8Array | JsonObject
}

/** Reads what a protocol delivered: the name of the gRPC code, the message and the details. */
export function callErrorFromDetails(
  code: string,
  message: string,
  details: readonly Detail[],
  httpStatus?: number,
): CallError {
  const infos = decodeAll(ErrorInfoSchema, details)
  const info = infos.length === 1 ? infos[0] : undefined
  const [resource] = decodeAll(ResourceInfoSchema, details)
  const [retry] = decodeAll(RetryInfoSchema, details)
  return {
    code,
    message,
    reason: info?.reason,
    domain: info?.domain,
    metadata: info?.metadata ?? {},
    violations: decodeAll(BadRequestSchema, details).flatMap(({ fieldViolations }) =>
      fieldViolations.map(({ field, description, reason }) => ({ field, description, rule: reason })),
    ),
    resource: resource && { type: resource.resourceType, id: resource.resourceName },
    retryAfterSeconds: retry?.retryDelay && Number(retry.retryDelay.seconds),
    httpStatus,
  }
}

function decodeAll<Desc extends DescMessage>(desc: Desc, details: readonly Detail[]): MessageShape<Desc>[] {
  return details
    .filter(({ type }) => type === desc.typeName)
    .map(({ value }) => (value instanceof Uint8Array ? fromBinary(desc, value) : fromJson(desc, value as never)))
}
