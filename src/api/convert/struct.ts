import type { JsonObject as WireObject } from '@bufbuild/protobuf'
import type { Value } from '@bufbuild/protobuf/wkt'
import { Failure, isJsonObject, JSON_DEPTH_MAX, type Json, JsonNumber, type JsonObject } from '../../base/index.ts'
import { JsonValue, jsonOf } from '../message/json-value.ts'

/** A free-form object as a message holds it; absent becomes `{}`, so that no client ever misses the key. */
export function structFrom(json: JsonObject | undefined): WireObject {
  // protobuf's JSON type is ours without `readonly`, and nothing here or there changes what it holds.
  return (json ?? {}) as WireObject
}

/**
 * A value of a third party as a message holds it.
 *
 * @throws Failure UPSTREAM_INVALID_RESPONSE when it is nested deeper than binary clients read (they stop at 100 messages, and
 *   a level takes up to three)
 */
export function valueFrom(json: Json): Value {
  if (isDeeperThan(json, JSON_DEPTH_MAX))
    throw new Failure(
      'UPSTREAM_INVALID_RESPONSE',
      `the answer is nested deeper than ${JSON_DEPTH_MAX} levels, which only REST can carry`,
    )
  return new JsonValue(json)
}

/** The JSON that a message holds; absent stays absent. */
export function jsonFrom(value: Value | undefined): Json | undefined {
  return value && jsonOf(value)
}

/** Tells whether a message can hold the value. */
export function fitsMessage(json: Json): boolean {
  return !isDeeperThan(json, JSON_DEPTH_MAX)
}

function isDeeperThan(value: Json, levels: number): boolean {
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return false
  if (levels === 0) return true
  const items: readonly Json[] = Array.isArray(value) ? value : isJsonObject(value) ? Object.values(value) : []
  return items.some((item) => isDeeperThan(item, levels - 1))
}
