import { z } from 'zod'
import { compileTemplate, renderText } from '../../expressions/template.ts'
import { withSchema } from '../format.ts'
import { nameText, templateText } from '../schema-types.ts'
import {
  integerAt,
  type ListingPage,
  type ListingStep,
  type PaginationFormat,
  type Paginator,
  textAt,
  type UpstreamPage,
} from './paginator.ts'
import { commonKeys, compileRules, refineParamNames } from './rules.ts'

const config = z
  .strictObject({
    ...commonKeys,
    unit: nameText().default('items').describe('Range unit, for example `items` or `records`.'),
    first: templateText()
      .optional()
      .describe(
        'The first header, where an API has a grammar of its own and names the later ones in `Next-Range`: `id ..; max={{pagination.limit}}`.',
      ),
  })
  .superRefine(refineParamNames(['limit_key']))
  .prefault({})

/** Default size of a range. */
const RANGE_SIZE_DEFAULT = 100

/** `items 0-99/1234`, the total possibly `*`. */
const CONTENT_RANGE = /(?<!\d)(\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/
const TOTAL = /\/(\d{1,15})$/

/** `range`: the Range header counts records (RFC 9110 §14), or the API names the next range itself. */
export const range: PaginationFormat = {
  format: 'range',
  summary:
    'Asks for record ranges with the `Range` header; follows `Next-Range` where the API sends it. 416 is the end.',
  config,
  compile: withSchema(config, (parsed) => ({
    format: 'range',
    rules: compileRules(parsed, true),
    paginator: rangePaginator(parsed),
  })),
}

function rangePaginator(parsed: z.output<typeof config>): Paginator {
  const first = parsed.first === undefined ? undefined : compileTemplate(parsed.first)
  return {
    ends: [{ reason: 'range_end', when: 'the range reaches the last record, or the answer was not a part' }],
    start: ({ scope }, limit = RANGE_SIZE_DEFAULT) =>
      first === undefined ? { from: 0 } : { next: renderText(first, { ...scope, pagination: { limit } }) },
    request: (position, limit = RANGE_SIZE_DEFAULT) => {
      const from = position.next === undefined ? integerAt(position, 'from') : undefined
      const value = from === undefined ? textAt(position, 'next') : `${parsed.unit}=${from}-${from + limit - 1}`
      return { params: [{ location: 'header', key: 'range', value }], values: { range: value } }
    },
    next: nextRange,
    total: ({ headers }) => totalIn(headers),
    endStatus: 416,
  }
}

/** NaN for `*`. Past the end there is a total without a range. */
function totalIn(headers: UpstreamPage['headers']): number {
  return Number(TOTAL.exec(headers['content-range']?.trim() ?? '')?.[1] ?? Number.NaN)
}

function nextRange(
  { headers, received, status }: ListingPage,
  position: { readonly [key: string]: unknown },
): ListingStep {
  const named = headers['next-range']
  if (named !== undefined) return { kind: 'next', position: { next: named } }
  const [, , last, total] = CONTENT_RANGE.exec(headers['content-range']?.trim() ?? '') ?? []
  const isAll = status === 200 && last === undefined
  if (position.next !== undefined || isAll || (total !== '*' && Number(last) + 1 >= Number(total)))
    return { kind: 'end', reason: 'range_end' }
  const from = last === undefined ? Number(position.from) + received.length : Number(last) + 1
  return { kind: 'next', position: { from } }
}
