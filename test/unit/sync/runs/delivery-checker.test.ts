import { describe, expect, it } from 'vitest'
import { checkDeliveries, type DeliveryCheck } from '../../../lab/faults/support/delivery-checker.ts'

const RUN = 'run'
/** Pages of two records each; `2!` is page 2 with other records. */
function judge(arrivals: string): DeliveryCheck {
  const pages = arrivals.split(' ').map((text) => {
    const sequence = Number.parseInt(text, 10)
    const records = [sequence * 2, sequence * 2 + 1]
    return { runId: RUN, sequence, content: text.endsWith('!') ? 'other' : `${sequence}`, records }
  })
  return checkDeliveries(new Map([[RUN, 8]]), pages)
}

const FINE: DeliveryCheck = { records: 8, missing: 0, repeated: 0, changed: 0, early: 0, behind: 0 }

describe('the checker of deliveries', () => {
  it.each<[string, string, Partial<DeliveryCheck>]>([
    ['accepts every page once, in order', '0 1 2 3', {}],
    ['accepts that the page in flight comes again', '0 1 1 2 3 3', { repeated: 2 }],
    ['counts records that never came', '0 1 2', { records: 6, missing: 2 }],
    ['counts a page that comes again with other records', '0 1 1! 2 3', { repeated: 1, changed: 1 }],
    ['counts a page that comes before the one below it', '0 2 1 3', { early: 2 }],
    ['counts a page that comes again after later ones', '0 1 2 0 3', { repeated: 1, behind: 1 }],
  ])('%s', (_, arrivals, difference) => {
    expect(judge(arrivals)).toEqual({ ...FINE, ...difference })
  })
})
