/** One page as a receiver got it. */
export interface ReceivedPage {
  readonly runId: string
  readonly sequence: number
  /** A digest of the records. */
  readonly content: string
  /** Numbers of the records, from 0. */
  readonly records: readonly number[]
}

/** What a receiver got for all runs together. */
export interface DeliveryCheck {
  readonly records: number
  /** Records that never came. */
  readonly missing: number
  /** Pages that came again. */
  readonly repeated: number
  /** Pages that came again with other records. */
  readonly changed: number
  /** Pages that came before one with a lower sequence number. */
  readonly early: number
  /** Pages that came again although a later one had come: not the page in flight. */
  readonly behind: number
}

/**
 * Looks at pages in the order in which they came.
 *
 * Of each run every record comes, sequence numbers have no gap, and what comes again is the page in flight, unchanged.
 *
 * @param runs how many records each run owes
 */
export function checkDeliveries(runs: ReadonlyMap<string, number>, pages: readonly ReceivedPage[]): DeliveryCheck {
  const byRun = Map.groupBy(pages, ({ runId }) => runId)
  const verdicts = [...runs].map(([id, owed]) => judgeRun(owed, byRun.get(id) ?? []))
  const total = (name: keyof DeliveryCheck) => verdicts.reduce((sum, verdict) => sum + verdict[name], 0)
  return {
    records: total('records'),
    missing: total('missing'),
    repeated: total('repeated'),
    changed: total('changed'),
    early: total('early'),
    behind: total('behind'),
  }
}

function judgeRun(owed: number, pages: readonly ReceivedPage[]): DeliveryCheck {
  const contents = new Map<number, string>()
  const records = new Set<number>()
  let [repeated, changed, early, behind] = [0, 0, 0, 0]
  let latest: number | undefined
  for (const { sequence, content, records: received } of pages) {
    for (const record of received) records.add(record)
    const first = contents.get(sequence)
    if (first === undefined) {
      if (latest !== undefined && sequence !== latest + 1) early++
      contents.set(sequence, content)
    } else {
      repeated++
      if (first !== content) changed++
      if (sequence !== latest) behind++
    }
    latest = Math.max(latest ?? sequence, sequence)
  }
  return { records: records.size, missing: owed - records.size, repeated, changed, early, behind }
}
