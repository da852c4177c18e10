import { checkJsonSchema, type JsonObject, type Violation } from '../base/index.ts'

/** A model repairs a few arguments at a time. */
const VIOLATIONS_MAX = 20

/**
 * Checks the arguments of a tool against its input schema; the keywords that `simplifySchema` keeps, without `format`, `not`
 * and the alternatives, which third parties check themselves.
 *
 * @returns what is wrong, at most 20 violations; empty: nothing
 */
export function checkArguments(schema: JsonObject, given: JsonObject): readonly Violation[] {
  return checkJsonSchema(schema, given, { findingsMax: VIOLATIONS_MAX })
}
