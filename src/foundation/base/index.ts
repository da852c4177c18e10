/**
 * What everything builds on: time, ids, text, backoff, caches, loops and the one error type.
 *
 * Nothing here knows the product's nouns, opens a socket or keeps state beyond the queue of the event loop.
 */

export { type BackoffPolicy, backoffMs, hintedWaitMs, type Random, validHintMs } from './backoff.ts'
export { type Clock, DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, systemClock, wholeSeconds, withTimeout } from './clock.ts'
export { ACCEPTED_ENCODINGS, codingOf, decompress } from './compression.ts'
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
export { isUuid, lowestIdAt, momentOfId, newId } from './ids.ts'
export { LazyMap } from './lazy-map.ts'
export { LongPollHub } from './long-poll-hub.ts'
export { MicroBatcher } from './micro-batcher.ts'
export { parseTime } from './parse-time.ts'
export { PollLoop, type PollLoopDeps, type PollLoopSpec } from './poll-loop.ts'
export { isProxyCommand } from './proxy-commands.ts'
export {
  type CompanionRow,
  currentRequest,
  currentRequestId,
  detachFromRequest,
  type RequestScope,
  type RequestSlot,
  releaseSlotWhile,
  runInRequest,
} from './request-scope.ts'
export { createSealer, type Sealer } from './sealer.ts'
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
export { FORM_FIELDS_MAX, isFormTooLarge, parseFormFields } from './url-encoded-form.ts'
