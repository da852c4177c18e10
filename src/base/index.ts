/**
 * What every module builds on: time, ids, JSON, dot paths, backoff, caches and the one error type.
 *
 * Nothing here knows the product's nouns, opens a socket or keeps state beyond the queue of the event loop.
 */

export {
  type BackoffPolicy,
  backoffMs,
  hintedWaitMs,
  type Random,
  type RetrySchedule,
  retryDelayMs,
  validHintMs,
} from './backoff.ts'
export { type Clock, DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, systemClock, wholeSeconds, withTimeout } from './clock.ts'
export { ACCEPTED_ENCODINGS, codingOf, decompress } from './compression.ts'
export { type DotPath, formatDotPath, getAtPath, parseDotPath, tryParseDotPath } from './dot-path.ts'
export {
  accountNotActive,
  assertNever,
  catchFailure,
  DATABASE_REASONS,
  etagMismatch,
  FAILURE_REASONS,
  Failure,
  type FailureReason,
  invalidFields,
  isTransient,
  notFound,
  type StatusCode,
  type TransientReason,
  type Violation,
} from './errors.ts'
export { TimeSlice, yieldToEventLoop } from './event-loop-turns.ts'
export { FairQueue } from './fair-queue.ts'
export { FairSemaphore } from './fair-semaphore.ts'
export { FairSlots } from './fair-slots.ts'
export { FORM_FIELDS_MAX, isFormTooLarge, parseFormFields } from './form-fields.ts'
export { isUuid, lowestIdAt, newId } from './ids.ts'
export {
  canonicalJson,
  deepMerge,
  exceedsJsonSize,
  FORBIDDEN_KEYS,
  isJsonObject,
  JSON_DEPTH_MAX,
  type Json,
  type JsonObject,
  overlay,
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
export { LazyMap } from './lazy-map.ts'
export { LongPollHub } from './long-poll-hub.ts'
export { MicroBatcher } from './micro-batcher.ts'
export { parseTime } from './parse-time.ts'
export { PollLoop, type PollLoopDeps, type PollLoopSpec } from './poll-loop.ts'
export { isProxyCommand } from './proxy-commands.ts'
export { REGIONS, type Region } from './regions.ts'
export {
  type CompanionRow,
  currentRequest,
  outliveRequest,
  type RequestScope,
  type RequestSlot,
  runInRequest,
  withoutSlot,
  workOwner,
} from './request-scope.ts'
export { createSealer, type Sealer, sealedPrefix } from './sealer.ts'
export { Slab } from './slab.ts'
export { slidingCount, type WindowCounts, windowsUntilAllowed } from './sliding-window.ts'
export { type TransitionTable, transitionsOf } from './state-machine.ts'
export {
  type CamelCase,
  camelCase,
  createSuggester,
  findNear,
  foldText,
  formatQuantity,
  mustBeOneOf,
  searchWords,
  suggest,
  suggestOneOf,
  trimEnd,
  truncateText,
} from './text.ts'
export { readThrough, TtlCache } from './ttl-cache.ts'
export { type TaskOwner, WorkerThreads } from './worker-threads.ts'
