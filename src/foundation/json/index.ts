/**
 * JSON values with every digit of their numbers: parsed, written, compared, walked by dot paths, checked against a JSON Schema.
 *
 * Never here: what a value means.
 */

export { type DotPath, formatDotPath, getAtPath, parseDotPath, tryParseDotPath } from './dot-path.ts'
export {
  canonicalJson,
  deepMerge,
  exceedsJsonSize,
  FORBIDDEN_KEYS,
  isJsonObject,
  isSameScalar,
  JSON_DEPTH_MAX,
  type Json,
  type JsonObject,
  overlay,
  toDoubles,
} from './json.ts'
export { decimalForm, isJsonNumber, JsonNumber, jsonNumberOf, toDouble } from './json-number.ts'
export {
  JSON_NESTING_MAX,
  JSON_VALUES_MAX,
  type JsonScan,
  JsonTextError,
  nestedTooDeep,
  parseJson,
  parseScanned,
  scanJson,
} from './json-parse.ts'
export { parseJsonInSlices } from './json-parse-sliced.ts'
export { checkJsonSchema, propertiesOf, type SchemaProblem, typesOf } from './json-schema.ts'
export { chunkJson, stringifyJson } from './json-stringify.ts'
export { findUnstorable, findUnstorableText, isStorableNumber, type JsonFinding, toJsonbText } from './jsonb.ts'
