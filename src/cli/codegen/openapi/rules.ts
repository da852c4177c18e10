import { type DescField, getOption, type JsonObject } from '@bufbuild/protobuf'
import {
  type FieldRules,
  field as fieldRules,
  type Int32Rules,
  type StringRules,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'

/**
 * The JSON Schema keywords that say what a field's `buf.validate` rules say. Rules without a counterpart (CEL, future
 * timestamps) are left to the comments. Keywords of list elements and map values come under `items` and
 * `additionalProperties`.
 */
export function ruleKeywords(field: DescField): JsonObject {
  return keywords(getOption(field, fieldRules))
}

function keywords(rules: FieldRules): JsonObject {
  const { type } = rules
  switch (type.case) {
    case 'string':
      return stringKeywords(type.value)
    case 'int32':
      return integerKeywords(type.value)
    case 'repeated':
      return defined({
        minItems: size(type.value.minItems),
        maxItems: size(type.value.maxItems),
        uniqueItems: type.value.unique || undefined,
        items: type.value.items && keywords(type.value.items),
      })
    case 'map':
      return defined({ additionalProperties: type.value.values && keywords(type.value.values) })
    default:
      return {}
  }
}

function stringKeywords(rules: StringRules): JsonObject {
  return defined({
    format: rules.wellKnown.case === 'uuid' && rules.wellKnown.value ? 'uuid' : undefined,
    minLength: size(rules.minLen),
    maxLength: size(rules.maxLen),
    pattern: rules.pattern === '' ? undefined : rules.pattern,
    enum: rules.in.length > 0 ? rules.in : undefined,
  })
}

function integerKeywords(rules: Int32Rules): JsonObject {
  const { greaterThan, lessThan } = rules
  return defined({
    minimum: greaterThan.case === 'gte' ? greaterThan.value : undefined,
    exclusiveMinimum: greaterThan.case === 'gt' ? greaterThan.value : undefined,
    maximum: lessThan.case === 'lte' ? lessThan.value : undefined,
    exclusiveMaximum: lessThan.case === 'lt' ? lessThan.value : undefined,
  })
}

/** A length of 0 is a rule's way of not being set, and as a limit it would say nothing. */
function size(length: bigint): number | undefined {
  return length === 0n ? undefined : Number(length)
}

function defined(keywords: Readonly<Record<string, JsonObject[string] | undefined>>): JsonObject {
  const kept: JsonObject = {}
  for (const [name, value] of Object.entries(keywords)) if (value !== undefined) kept[name] = value
  return kept
}
