/**
 * The ground every room stands on: time, ids, JSON, paths, back-off and the one error type.
 *
 * Nothing here knows the product's nouns, opens a socket or keeps state.
 */
export { assertNever } from './assert-never.ts'
export { type BackoffPolicy, backoffMs } from './backoff.ts'
export { type Clock, systemClock } from './clock.ts'
export { formatQuantity } from './counted.ts'
export { type DotPath, formatDotPath, getAtPath, parseDotPath, tryParseDotPath } from './dot-path.ts'
export {
  accountNotActive,
  etagMismatch,
  FAILURE_REASONS,
  Failure,
  type FailureReason,
  invalidFields,
  notFound,
  type StatusCode,
  type Violation,
} from './failure.ts'
export { FairSemaphore } from './fair-places.ts'
export { isUuid, newId } from './ids.ts'
export {
  canonicalJson,
  deepMerge,
  FORBIDDEN_KEYS,
  findUnstorable,
  findUnstorableText,
  isJsonObject,
  isStorableNumber,
  JSON_DEPTH_MAX,
  type Json,
  type JsonFinding,
  type JsonObject,
} from './json.ts'
export {
  decimalForm,
  isJsonNumber,
  isSameScalar,
  JsonNumber,
  jsonNumberOf,
  toDouble,
  toDoubles,
} from './json-number.ts'
export { chunkJson, stringifyJson } from './json-print.ts'
export { exceedsJsonSize } from './json-size.ts'
export { parseJsonInSlices, yieldToEventLoop } from './json-slices.ts'
export {
  JSON_NESTING_MAX,
  JSON_VALUES_MAX,
  type JsonScan,
  JsonTextError,
  nestedTooDeep,
  parseJson,
  parseScanned,
  scanJson,
} from './json-text.ts'
export { toJsonbText } from './jsonb-text.ts'
export { Slab } from './slots.ts'
export { createSuggester, suggest } from './suggest.ts'
export { WorkerThread } from './task-thread.ts'
export { trimEnd } from './trim-end.ts'
