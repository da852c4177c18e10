import { describe, expect, it } from 'vitest'
import { query } from '../../../../src/foundation/database/index.ts'
import { parseTimestamp } from '../../../../src/foundation/database/parse-timestamp.ts'
import { testDatabase } from '../../../support/database.ts'

const { database } = await testDatabase()

/** Times of every length of a year and a fraction, before and after Christ. */
const TIMES = [
  '0044-03-15 12:00:00.25+00 BC',
  '0001-01-01 00:00:00+00',
  '0999-12-31 23:59:59.999+00',
  '1000-01-01 00:00:00+00',
  '1969-12-31 23:59:59.999+00',
  '1970-01-01 00:00:00+00',
  '2000-02-29 12:34:56.000001+00',
  '2026-01-31 08:00:00.1+00',
  '2026-01-31 08:00:00.12+00',
  '2026-01-31 08:00:00.285+00',
  '2026-01-31 08:00:00.1239+00',
  '2026-12-31 23:59:59.999999+00',
  '9999-12-31 23:59:59.999999+00',
  '10000-01-01 00:00:00+00',
]

describe('a time', () => {
  it.each(['UTC', 'Asia/Kolkata', 'America/New_York'])(
    'is read as the server means it, in a session in %s',
    async (zone) => {
      const rows = await database.transaction(async (tx) => {
        await query(tx, "select set_config('timezone', :zone, true)", { zone })
        const sql = `select time::text as text, (extract(epoch from date_trunc('milliseconds', time)) * 1000)::float8 as epoch_ms
        from unnest(:times::timestamptz[]) as time`
        return await query<{ text: string; epochMs: number }>(tx, sql, { times: TIMES })
      })
      expect(rows.map(({ text }) => [text, parseTimestamp(text).getTime()])).toEqual(
        rows.map(({ text, epochMs }) => [text, epochMs]),
      )
    },
  )

  it('may be infinite', () => {
    expect(parseTimestamp('infinity')).toBe(Number.POSITIVE_INFINITY)
  })
})
