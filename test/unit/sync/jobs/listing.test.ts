import { expect, it } from 'vitest'
import { PageFetcher } from '../../../../src/sync/jobs/listing.ts'
import type { PageOutcome } from '../../../../src/sync/jobs/page-outcome.ts'
import type { ListingRequest, PageSource } from '../../../../src/sync/jobs/page-source.ts'
import { fastClock } from '../../../support/fast-clock.ts'

const PAGE: PageOutcome = {
  kind: 'page',
  page: 1,
  records: [1],
  state: null,
  stopReason: 'no_cursor',
  rateLimit: undefined,
}
const WAIT: PageOutcome = { kind: 'wait', afterMs: 1_000 }
const request: ListingRequest = { resource: 'repos', method: 'list', query: {}, args: {}, resources: {} }

/** Opens lists whose steps are these in turn, and counts them. */
function sourceOf(...opened: readonly (readonly PageOutcome[])[]) {
  const source = {
    opens: 0,
    async *pages() {
      yield* opened[source.opens++] ?? []
    },
  }
  return source
}

async function fetchFirst(source: Pick<PageSource, 'pages'>) {
  const clock = fastClock()
  const { signal } = new AbortController()
  const deps = { source: source as PageSource, clock, random: () => 0, signal, showWait: () => {} }
  const page = await new PageFetcher(deps, 1).open(() => request).fetch(null)
  return { page, slept: clock.sleptMs }
}

it.each<[string, readonly (readonly PageOutcome[])[], number]>([
  ['goes on with a list after a short wait, with what it has of the page', [[WAIT, WAIT, PAGE]], 1],
  ['opens the list again when it ended with the wait', [[WAIT], [WAIT], [PAGE]], 3],
])('a listing %s', async (_, opened, opens) => {
  const source = sourceOf(...opened)
  expect(await fetchFirst(source)).toEqual({ page: PAGE, slept: [1_000, 1_000] })
  expect(source.opens).toBe(opens)
})

it('a listing leaves a long wait to the run', async () => {
  const source = sourceOf([{ kind: 'wait', afterMs: 60_000 }, PAGE])
  expect(await fetchFirst(source)).toEqual({ page: { kind: 'rate_limited', afterMs: 60_000 }, slept: [] })
})
