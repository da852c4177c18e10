import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { dataFiles, readData, writeData } from '../../../support/data-files.ts'

/**
 * What a provider answers according to its public documentation, and how it is asked: by resource and name of the case.
 * `test/data/unified-calls/fixtures/<model>/<integration>.json`.
 */
export type FixtureFile = Readonly<Record<string, Readonly<Record<string, FixtureCase>>>>

/** One unified call. */
export interface FixtureCase {
  /** Unified method. */
  readonly method: string
  readonly id?: string
  /** Passed on as they are (`remote_query`). */
  readonly query?: JsonObject
  /** By unified field a value (operator `eq`), or an object of values by operator: `{"updated_at": {"gt": "…"}}`. */
  readonly filters?: JsonObject
  /** `field`, or `-field` for descending. */
  readonly sort_by?: string
  readonly limit?: number
  readonly cursor?: string
  readonly expand?: readonly string[]
  readonly body?: Json
  readonly remote_fields?: JsonObject
  /** Context of the account, over that of the golden file of the definition. */
  readonly context?: JsonObject
  /** When the call begins; absent: any time. */
  readonly called_at?: string
  /** Addresses of the public documentation that the responses follow. */
  readonly docs: string | readonly string[]
  /** What is sent and answered, in this order, all of it. */
  readonly exchanges: readonly FixtureExchange[]
  /** Writable fields that the provider answers in another way than they were written, with the reason. */
  readonly not_echoed?: Readonly<Record<string, string>>
}

interface FixtureExchange {
  /** Compared where it is there: `query` and `body` as a whole, where they are. */
  readonly request?: FixtureRequest
  readonly response: {
    readonly status?: number
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: Json
  }
}

/** A request of the provider, without host and headers. */
export interface FixtureRequest {
  readonly method: string
  readonly path: string
  /** By name; of several parameters of one name, a list. */
  readonly query?: Readonly<Record<string, string | readonly string[]>>
  /** JSON, or a text. */
  readonly body?: Json
}

/** What a case comes to, in the golden file. */
export interface CaseResult {
  readonly requests: readonly FixtureRequest[]
  readonly outcome: string
  /** Of an error. */
  readonly status?: number
  readonly error?: Json
  readonly result?: Json
  readonly next_cursor?: boolean
  readonly warnings?: Json
  readonly ignored_filters?: Json
}

export type GoldenResults = Readonly<Record<string, Readonly<Record<string, CaseResult>>>>

const FIXTURES = 'unified-calls/fixtures'

/** `<model>/<integration>` of all fixture files, sorted. */
export const FIXTURE_NAMES: readonly string[] = dataFiles(FIXTURES).map((file) => file.replace(/\.json$/, ''))

export function readFixtures(model: string, integration: string): FixtureFile {
  return readData(`${FIXTURES}/${model}/${integration}.json`) ?? {}
}

export function readGolden(model: string, integration: string): GoldenResults {
  return readData(goldenFile(model, integration)) ?? {}
}

export function writeGolden(model: string, integration: string, results: GoldenResults): void {
  writeData(goldenFile(model, integration), results)
}

function goldenFile(model: string, integration: string): string {
  return `unified-calls/golden/${model}/${integration}.json`
}
