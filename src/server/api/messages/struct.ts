import type { JsonObject as WireObject } from '@bufbuild/protobuf'
import type { Value } from '@bufbuild/protobuf/wkt'
import { Failure } from '../../../foundation/base/index.ts'
import { yieldToEventLoop } from '../../../foundation/fair/index.ts'
import {
  chunkJson,
  exceedsJsonSize,
  isJsonObject,
  JSON_DEPTH_MAX,
  type Json,
  JsonNumber,
  type JsonObject,
} from '../../../foundation/json/index.ts'
import { JsonValue, jsonOf } from './free-form.ts'

/** A JSON object as `google.protobuf.Struct`; absent becomes `{}`, so that the field is always present. */
export function structFrom(json: JsonObject | undefined): WireObject {
  // protobuf's JSON type is ours without `readonly`, and neither side changes it.
  return (json ?? {}) as WireObject
}

/**
 * A JSON value of an upstream as `google.protobuf.Value`.
 *
 * @throws Failure UPSTREAM_INVALID_RESPONSE when it is nested deeper than binary clients read (they stop at 100 messages, and
 *   a level takes up to three)
 */
export function valueFrom(json: Json): Value {
  if (isDeeperThan(json, JSON_DEPTH_MAX)) throw tooDeep()
  return new JsonValue(json)
}

function tooDeep(): Failure {
  return new Failure(
    'UPSTREAM_INVALID_RESPONSE',
    `the answer is nested deeper than ${JSON_DEPTH_MAX} levels, which only REST can carry`,
  )
}

/** `valueFrom` in several turns of the event loop for a large value. @throws Failure as it does */
export async function valueFromLarge(json: Json): Promise<Value> {
  if (await isDeeperInParts(json, JSON_DEPTH_MAX)) throw tooDeep()
  return new JsonValue(json)
}

/** `valueFromLarge` for each value of a list. @throws Failure as it does */
export async function valuesFrom(list: readonly Json[]): Promise<Value[]> {
  if (await isDeeperInParts(list, JSON_DEPTH_MAX + 1)) throw tooDeep()
  return list.map((json) => new JsonValue(json))
}

/** The JSON of a value; absent stays absent. */
export function jsonFrom(value: Value | undefined): Json | undefined {
  return value && jsonOf(value)
}

/** Tells whether a value is nested at most as deep as a message can hold. */
export function fitsMessage(json: Json): boolean {
  return !isDeeperThan(json, JSON_DEPTH_MAX)
}

/** Characters of JSON that are checked in one turn of the event loop. */
const PART_LENGTH = 512 * 1024

async function isDeeperInParts(value: Json, levels: number): Promise<boolean> {
  const isDivided = (Array.isArray(value) || isJsonObject(value)) && exceedsJsonSize(value, PART_LENGTH)
  if (!isDivided || levels === 0) return isDeeperThan(value, levels)
  for (const part of chunkJson(value, PART_LENGTH)) {
    const isDeeper =
      part.kind === 'entries' ? isDeeperThan(part.value, levels) : await isDeeperInParts(part.value, levels - 1)
    if (isDeeper) return true
    await yieldToEventLoop()
  }
  return false
}

/** Plain loops: they take a third of the time of `some` and `Object.values`, and a value may have a million parts. */
function isDeeperThan(value: Json, levels: number): boolean {
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return false
  if (levels === 0) return true
  if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) if (isDeeperThan(item, levels - 1)) return true
    return false
  }
  const members = value as JsonObject
  for (const key in members) if (isDeeperThan(members[key] ?? null, levels - 1)) return true
  return false
}
