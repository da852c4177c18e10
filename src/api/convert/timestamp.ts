import type { Timestamp } from '@bufbuild/protobuf/wkt'
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt'

/** A moment as a message holds it; absent stays absent. */
export function timestampFrom(date: Date): Timestamp
export function timestampFrom(date: Date | null | undefined): Timestamp | undefined
export function timestampFrom(date: Date | null | undefined): Timestamp | undefined {
  return date ? timestampFromDate(date) : undefined
}

/** The moment in a message, cut to milliseconds; absent stays absent. */
export function dateFrom(timestamp: Timestamp | undefined): Date | undefined {
  return timestamp && timestampDate(timestamp)
}
