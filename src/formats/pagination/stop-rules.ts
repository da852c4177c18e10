import { formatDotPath } from '../../base/index.ts'
import type { Pagination, StopRule } from './paginator.ts'

/** Every reason for which a listing of this definition ends once its answers are successes, in the order of evaluation. */
export function listStopRules({ rules, paginator }: Pagination): readonly StopRule[] {
  const { hasMorePath, totalPath, maxRecords, maxPages } = rules
  const { endStatus } = paginator
  const stops: (StopRule | false | undefined)[] = [
    endStatus !== undefined && { reason: 'range_end', when: `the status is ${endStatus}` },
    rules.stopExpression !== undefined && { reason: 'expression', when: 'stop_expression is true of the page' },
    hasMorePath && {
      reason: 'has_more_false',
      when: `${formatDotPath(hasMorePath, 'body')} is a no: false, 0 or "no"`,
    },
    rules.hasMoreExpression !== undefined && { reason: 'has_more_false', when: 'has_more_expression is a no' },
    totalPath &&
      rules.stopsOnTotal && {
        reason: 'total_reached',
        when: `as many records were read as ${formatDotPath(totalPath, 'body')} says`,
      },
    rules.stopsOnEmpty && { reason: 'empty_page', when: 'a page has no records' },
    rules.stopsOnShort && { reason: 'short_page', when: 'a page has fewer records than were asked for' },
    ...paginator.ends,
    rules.detectsLoop &&
      paginator.whenRepeated === 'end' && {
        reason: 'cursor_repeated',
        when: 'the page leads to where it was asked for, and asked again holds the same records',
      },
    Number.isFinite(maxRecords) && { reason: 'max_records', when: `${maxRecords} records were read` },
    Number.isFinite(maxPages) && { reason: 'max_pages', when: `${maxPages} pages were read` },
  ]
  return stops.filter((stop) => stop !== undefined && stop !== false)
}
