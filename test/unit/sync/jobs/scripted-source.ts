import type { Json } from '../../../../src/foundation/json/index.ts'
import type { ListingRequest, PageOutcome, PageSource } from '../../../../src/sync/jobs/index.ts'

/** A call the source was asked to make. */
export interface SourceCall {
  readonly request: ListingRequest
  /** 0-based page number. */
  readonly page: number
}

/** A third party made of lists. */
export interface ScriptedSource extends PageSource {
  readonly calls: readonly SourceCall[]
}

/** What the third party holds and how it misbehaves. */
export interface SourceScript {
  /** All records a request lists; throwing is an error of the first page. */
  readonly records: (request: ListingRequest) => readonly Json[]
  readonly pageSize?: number
  /** What a page claims there to be in all. */
  readonly total?: (call: SourceCall) => number | undefined
  /** In place of the page: an error is thrown, an outcome yielded. Calls are counted from 0. */
  readonly failure?: (call: SourceCall, index: number) => Error | PageOutcome | undefined
  readonly parentPaths?: PageSource['parentPaths']
}

/** Pages through lists with the state `{page}`; the last page says `no_cursor`. */
export function scriptedSource(script: SourceScript): ScriptedSource {
  const calls: SourceCall[] = []
  const size = script.pageSize ?? 2

  function answer(request: ListingRequest, page: number): PageOutcome {
    const index = calls.push({ request, page }) - 1
    const failure = script.failure?.({ request, page }, index)
    if (failure instanceof Error) throw failure
    if (failure !== undefined) return failure
    const all = script.records(request)
    const state = (page + 1) * size < all.length ? { page: page + 1 } : null
    const records = all.slice(page * size, (page + 1) * size)
    return {
      kind: 'page',
      page: page + 1,
      records,
      state,
      stopReason: state === null ? 'no_cursor' : undefined,
      total: script.total?.({ request, page }),
    }
  }

  return {
    calls,
    async *pages(request, state, signal) {
      for (let page = Number(state?.page ?? 0); ; page++) {
        await new Promise(setImmediate)
        signal.throwIfAborted()
        const answered = answer(request, page)
        yield answered
        if (answered.kind !== 'page' || answered.state === null) return
      }
    },
    ...(script.parentPaths === undefined ? {} : { parentPaths: script.parentPaths }),
  }
}

/** The calls in a short form: `repos`, `issues?repo=a#1` for the second page. */
export function namesOf(calls: readonly SourceCall[]): string[] {
  return calls.map(({ request, page }) => {
    const query = new URLSearchParams(
      Object.entries(request.query).map(([key, value]) => [key, String(value)] as [string, string]),
    )
    const id = request.id === undefined ? '' : `/${request.id}`
    return `${request.resource}${id}${query.size === 0 ? '' : `?${query}`}${page === 0 ? '' : `#${page}`}`
  })
}
