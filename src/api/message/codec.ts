import { create, type DescMessage, fromBinary, fromJson, type Message, toBinary, toJson } from '@bufbuild/protobuf'
import { Failure, isJsonObject, type Json, type JsonObject } from '../../base/index.ts'
import type { Finding, ResultInit } from '../service.ts'
import { inspectShape } from './shape.ts'
import { padTimestamps } from './timestamps.ts'

/** Names as the contract spells them; fields without presence are written even when they hold their default. */
const JSON_WRITE = { useProtoFieldName: true, alwaysEmitImplicit: true } as const

/** A decoded request and what was wrong with its form. The message holds everything that could be read. */
export interface Draft {
  readonly message: Message
  readonly findings: readonly Finding[]
}

/**
 * Reads a binary message.
 *
 * @throws Failure MALFORMED_BODY
 */
export function decodeBinary(desc: DescMessage, bytes: Uint8Array): Draft {
  try {
    return { message: fromBinary(desc, bytes), findings: [] }
  } catch (cause) {
    throw new Failure('MALFORMED_BODY', `the body is not a ${desc.typeName} in protobuf encoding`, { cause })
  }
}

/**
 * Reads a message from JSON, in the contract's spelling or in lower camel case. Misfits are findings, all of them.
 *
 * @throws Failure MALFORMED_BODY when the value cannot be read for a reason that no field carries
 */
export function decodeJson(desc: DescMessage, json: Json): Draft {
  if (!isJsonObject(json)) throw new Failure('MALFORMED_BODY', 'the body must be a JSON object')
  try {
    return { message: read(desc, json), findings: [] }
  } catch (cause) {
    const { findings, rest } = inspectShape(desc, json)
    if (findings.length > 0) return { message: read(desc, rest), findings }
    throw new Failure('MALFORMED_BODY', `the body is not a ${desc.typeName}`, { cause })
  }
}

// protobuf's JSON type is ours without `readonly`, and it changes nothing it reads.
function read(desc: DescMessage, json: Json): Message {
  return fromJson(desc, json as never)
}

/** The message in protobuf encoding; `init` is what a handler returned. */
export function encodeBinary(desc: DescMessage, init: ResultInit): Uint8Array {
  return toBinary(desc, create(desc, init))
}

/** The message as JSON: the contract's spelling, defaults written, times with milliseconds. */
export function encodeJson(desc: DescMessage, init: ResultInit): JsonObject {
  const json = toJson(desc, create(desc, init), JSON_WRITE)
  padTimestamps(desc, json)
  return json as JsonObject
}
