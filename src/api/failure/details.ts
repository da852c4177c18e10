import { create, type DescMessage, type Message, toBinary, toJson } from '@bufbuild/protobuf'
import { StructSchema, ValueSchema } from '@bufbuild/protobuf/wkt'
import {
  BadRequestSchema,
  ErrorInfoSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from '../../../gen/google/rpc/error_details_pb.ts'
import type { Failure, Json, Violation } from '../../base/index.ts'
import { fitsMessage, valueFrom } from '../convert/struct.ts'
import { JsonValue } from '../message/json-value.ts'
import { restStatus } from './status.ts'

/** The namespace of the reasons in `google.rpc.ErrorInfo`. */
const DOMAIN = 'patchbay'

/** Wait advised for an overload or an outage that names none itself. */
const RETRY_AFTER_DEFAULT_SECONDS = 1

/** One machine-readable part of an error answer. */
export interface FailureDetail {
  readonly desc: DescMessage
  readonly message: Message
}

/**
 * The details of a failure as RPC protocols carry them: those of every protocol, what the definition tells of it as a
 * `google.protobuf.Struct` with the key `result`, and what the third party answered as a `google.protobuf.Value`.
 *
 * @param bytesMax room where the details go; of the violations the first ones are given, a larger answer is left out
 */
export function rpcDetails(failure: Failure, bytesMax = Number.POSITIVE_INFINITY): readonly FailureDetail[] {
  const details = failureDetails(failure, bytesMax)
  const { raw, result } = failure
  const given: FailureDetail[] = []
  if (result !== undefined && fits(result, bytesMax))
    given.push({ desc: StructSchema, message: create(StructSchema, { fields: { result: valueFrom(result) } }) })
  if (raw !== undefined && fits(raw, bytesMax)) given.push({ desc: ValueSchema, message: valueFrom(raw) })
  return [...details, ...given]
}

function fits(value: Json, bytesMax: number): boolean {
  return fitsMessage(value) && Buffer.byteLength(JSON.stringify(value)) <= bytesMax
}

/**
 * The `google.rpc` details of a failure: ErrorInfo always and once, the others where they help. The same on every
 * protocol.
 *
 * @param violationsBytesMax room for violations where the details go; when it is too small, the first ones are given and
 *   the metadata tells how many there are
 */
export function failureDetails(
  failure: Failure,
  violationsBytesMax = Number.POSITIVE_INFINITY,
): readonly FailureDetail[] {
  const { reason, resource } = failure
  const violations = fitting(failure.violations, violationsBytesMax)
  const isCut = violations.length < failure.violations.length
  const metadata = isCut ? { ...failure.metadata, violations: String(failure.violations.length) } : failure.metadata
  const details = [detail(ErrorInfoSchema, { reason, domain: DOMAIN, metadata })]
  if (violations.length > 0)
    details.push(
      detail(BadRequestSchema, {
        fieldViolations: violations.map(({ field, description, rule }) => ({ field, description, reason: rule })),
      }),
    )
  if (resource !== undefined)
    details.push(detail(ResourceInfoSchema, { resourceType: resource.type, resourceName: resource.id }))
  const seconds = retryAfterSeconds(failure)
  if (seconds !== undefined) details.push(detail(RetryInfoSchema, { retryDelay: delayOf(seconds) }))
  return details
}

/** How long the client should wait, seconds; absent when trying again does not help. */
function retryAfterSeconds(failure: Failure): number | undefined {
  if (failure.retryAfterSeconds !== undefined) return failure.retryAfterSeconds
  const status = restStatus(failure)
  return status === 429 || status === 503 ? RETRY_AFTER_DEFAULT_SECONDS : undefined
}

/** Response headers that go with a failure on every protocol. */
export function failureHeaders(failure: Failure): Readonly<Record<string, string>> {
  if (failure.code === 'UNAUTHENTICATED') return { 'www-authenticate': 'Bearer' }
  const seconds = retryAfterSeconds(failure)
  return { ...failure.headers, ...(seconds === undefined ? {} : { 'retry-after': String(Math.ceil(seconds)) }) }
}

/** The detail as JSON in the contract's spelling. */
export function detailJson({ desc, message }: FailureDetail): unknown {
  if (message instanceof JsonValue) return message.json
  return toJson(desc, message, { useProtoFieldName: true, alwaysEmitImplicit: true })
}

/** The detail in protobuf encoding. */
export function detailBytes({ desc, message }: FailureDetail): Uint8Array {
  return toBinary(desc, message)
}

/** Tags and lengths of one violation in protobuf encoding. */
const VIOLATION_OVERHEAD_BYTES = 12

function fitting(violations: readonly Violation[], bytesMax: number): readonly Violation[] {
  let bytes = 0
  const end = violations.findIndex(({ field, description, rule }) => {
    bytes += Buffer.byteLength(field + description + rule) + VIOLATION_OVERHEAD_BYTES
    return bytes > bytesMax
  })
  return end === -1 ? violations : violations.slice(0, end)
}

function detail<Desc extends DescMessage>(desc: Desc, init: Parameters<typeof create<Desc>>[1]): FailureDetail {
  return { desc, message: create(desc, init) }
}

function delayOf(seconds: number): { seconds: bigint; nanos: number } {
  const whole = Math.floor(seconds)
  return { seconds: BigInt(whole), nanos: Math.round((seconds - whole) * 1e9) }
}
