import type { Timestamp } from '@bufbuild/protobuf/wkt'
import type { Finding } from '../operation.ts'
import { dateFrom } from './values.convert.ts'

/** A range of time in a request. */
export interface RangeRequest {
  readonly since?: Timestamp | undefined
  readonly until?: Timestamp | undefined
}

/** A finding when a range of time has no moment in it. */
export function checkRange({ since, until }: RangeRequest): readonly Finding[] {
  const [from, to] = [dateFrom(since), dateFrom(until)]
  if (from === undefined || to === undefined || from < to) return []
  return [{ field: 'until', description: 'must be after since', rule: 'until.after_since' }]
}
