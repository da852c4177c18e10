import type { Json, JsonObject } from '../../foundation/json/index.ts'
import type { RecordsPage } from '../proxy/outcome.ts'
import type { FieldReferences, KeptReferences } from './expansions.ts'

/** What is read of a page that rate limits interrupt. Each part is filled as it is read, and not read again. */
export interface PageProgress {
  /** Results of steps by name. */
  readonly before: Record<string, Json>
  readonly after: Record<string, Json>
  /** The page of the provider. */
  page: RecordsPage | undefined
  readonly references: KeptReferences
}

/** JSON text of stored progress, in UTF-16 units. */
const PROGRESS_LENGTH_MAX = 1024 * 1024

/** Progress as it is stored. */
interface ProgressJson {
  readonly before: Record<string, Json>
  readonly after: Record<string, Json>
  readonly page: RecordsPage | undefined
  readonly references: Readonly<Record<string, StoredReferences>>
}

interface StoredReferences {
  /** Ids that were asked for, with what was loaded of them; without it for those that could not be loaded. */
  readonly asked: readonly (readonly [id: string, loaded?: Json])[]
  readonly warnings: FieldReferences['warnings']
}

/** The progress at the start of a page, or as another process stored it. */
export function readProgress(stored: JsonObject | null): PageProgress {
  const { before, after, page, references } = (stored ?? {}) as unknown as Partial<ProgressJson>
  const kept = Object.entries(references ?? {}).map(([field, { asked, warnings }]): [string, FieldReferences] => [
    field,
    {
      asked: new Set(asked.map(([id]) => id)),
      byId: new Map(asked.flatMap(([id, loaded]) => (loaded === undefined ? [] : [[id, loaded as never]]))),
      warnings: [...warnings],
    },
  ])
  return { before: { ...before }, after: { ...after }, page, references: new Map(kept) }
}

/** Whether something is read of the page, or of what comes before all pages. */
export function hasProgress({ before, page }: PageProgress): boolean {
  return page !== undefined || Object.keys(before).length > 0
}

/**
 * The progress as plain JSON of bounded size. What does not fit is read again: the page with what follows from it, then the oldest
 * references.
 */
export function storedProgress({ before, after, page, references }: PageProgress): JsonObject {
  const whole = { before, after, ...(page === undefined ? {} : { page: { ...page, rateLimit: undefined } }) }
  const steps = lengthOf(whole) <= PROGRESS_LENGTH_MAX ? whole : { before: {}, after: {} }
  let room = PROGRESS_LENGTH_MAX - lengthOf(steps)
  const stored: Record<string, StoredReferences> = {}
  for (const [field, { asked, byId, warnings }] of references) {
    const newest = [...asked].reverse().map((id) => (byId.has(id) ? ([id, byId.get(id)] as const) : ([id] as const)))
    const fitting = newest.filter((each) => {
      room -= lengthOf(each)
      return room >= 0
    })
    stored[field] = { asked: fitting.reverse() as unknown as StoredReferences['asked'], warnings }
  }
  return { ...steps, references: stored } as unknown as JsonObject
}

function lengthOf(value: unknown): number {
  return JSON.stringify(value).length
}
