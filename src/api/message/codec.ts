import {
  create,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  type MessageShape,
  toBinary,
  toJson,
} from '@bufbuild/protobuf'
import { Failure, isJsonObject, JSON_VALUES_MAX, type Json, type JsonObject } from '../../base/index.ts'
import type { Finding, ResultInit } from '../service.ts'
import { hasMoreFields } from './binary-values.ts'
import {
  asDoubles,
  fillJson,
  fillMessage,
  freeFormFields,
  mapFreeForm,
  placeholderOf,
  withoutFreeForm,
} from './free-form.ts'
import { tooManyValues } from './json-text.ts'
import { validateJsonShape } from './shape.ts'
import { formatTimestamps } from './timestamps.ts'

/** Names as the contract spells them; fields without presence are written even when they hold their default. */
const JSON_WRITE = { useProtoFieldName: true, alwaysEmitImplicit: true } as const

/** A decoded request and what was wrong with its form. The message holds everything that could be read. */
export interface DecodedRequest {
  readonly message: Message
  readonly findings: readonly Finding[]
}

/**
 * Reads a binary message of at most 50 000 fields. Unknown fields are left out.
 *
 * @throws Failure MALFORMED_BODY, REQUEST_TOO_LARGE
 */
export function decodeBinary(desc: DescMessage, bytes: Uint8Array): DecodedRequest {
  try {
    if (hasMoreFields(desc, bytes, JSON_VALUES_MAX)) throw tooManyValues()
    return { message: fromBinary(desc, bytes, { readUnknownFields: false }), findings: [] }
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    throw new Failure('MALFORMED_BODY', `the body is not a ${desc.typeName} in protobuf encoding`, { cause })
  }
}

/**
 * Reads a message from JSON, in the contract's spelling or in lower camel case. Misfits are findings, all of them.
 *
 * @throws Failure MALFORMED_BODY when the value cannot be read for a reason that no field carries
 */
export function decodeJson(desc: DescMessage, json: Json): DecodedRequest {
  if (!isJsonObject(json)) throw new Failure('MALFORMED_BODY', 'the body must be a JSON object')
  try {
    return { message: readJson(desc, json), findings: [] }
  } catch (cause) {
    const { findings, rest } = validateJsonShape(desc, json)
    if (findings.length > 0) return { message: readJson(desc, rest), findings }
    throw new Failure('MALFORMED_BODY', `the body is not a ${desc.typeName}`, { cause })
  }
}

/** The message that a JSON object spells. @throws for JSON that does not fit the type */
export function readJson<Desc extends DescMessage>(desc: Desc, json: Json): MessageShape<Desc> {
  if (!isJsonObject(json)) throw new Error(`${desc.typeName} is written as a JSON object`)
  // protobuf's JSON type is ours without `readonly`, and it changes nothing it reads.
  const message = fromJson(desc, withoutFreeForm(desc, json) as never)
  fillMessage(freeFormFields(desc), message, json)
  return message
}

/** The message in protobuf encoding, numbers of free-form values as the nearest doubles; `init` is what a handler returned. */
export function encodeBinary(desc: DescMessage, init: ResultInit): Uint8Array {
  const doubles = mapFreeForm(freeFormFields(desc), init, asDoubles)
  return toBinary(desc, create(desc, doubles))
}

/** The message as JSON: the contract's spelling, defaults written, times with milliseconds, free-form values as they are. */
export function encodeJson(desc: DescMessage, init: ResultInit): JsonObject {
  const fields = freeFormFields(desc)
  const json = toJson(desc, create(desc, mapFreeForm(fields, init, placeholderOf)), JSON_WRITE) as JsonObject
  formatTimestamps(desc, json as JsonValue)
  fillJson(fields, json, init)
  return json
}
