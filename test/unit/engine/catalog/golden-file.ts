import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { readData } from '../../../support/data-files.ts'

/** What a definition is expected to send for each of its methods, and to make of what comes back. */
export interface GoldenFile {
  /** The account whose calls these are. */
  readonly account: {
    readonly credentials?: JsonObject
    readonly context?: JsonObject
    readonly environmentVariables?: JsonObject
    readonly connection?: JsonObject
  }
  readonly calls: readonly GoldenCall[]
}

/** One call: what the caller says, what must be sent, what is answered, what it must come to. */
export interface GoldenCall {
  /** `<resource>.<method>`, or `_.<action>`. */
  readonly call: string
  readonly id?: Json
  readonly query?: JsonObject
  readonly body?: Json
  readonly args?: JsonObject
  /** Page size. */
  readonly limit?: number
  readonly request: GoldenRequest
  /** Default: 200 with `{}`. */
  readonly answer?: GoldenAnswer
  /** Absent: not asked about. */
  readonly outcome?: 'ok' | 'rate_limited' | 'upstream_error'
  readonly result?: Json
  /** The request for the page after this one. */
  readonly next?: Partial<GoldenRequest>
  readonly stop_reason?: string
  readonly status?: number
  readonly message?: string
  readonly retry_after?: number
}

export interface GoldenRequest {
  readonly method: string
  readonly url: string
  /** Complete but for `user-agent`. */
  readonly headers: Readonly<Record<string, string>>
  /** JSON, or a text; `null` or absent: none. */
  readonly body?: Json
}

export interface GoldenAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: Json
  readonly text?: string
  readonly base64?: string
}

/** The golden file of a definition; `undefined` when there is none. */
export function readGoldenFile(name: string): GoldenFile | undefined {
  if (!read.has(name)) read.set(name, readData(`catalog/calls/${name}.json`))
  return read.get(name)
}

const read = new Map<string, GoldenFile | undefined>()

/** The requests for webhooks of a definition, as calls: `subscription.<verb>`. None when it orders no webhooks. */
export function readSubscriptionCalls(name: string): readonly GoldenCall[] {
  const requests = readData<Record<string, readonly Omit<GoldenRequest, 'headers'>[]>>(
    `catalog/subscriptions/${name}.json`,
  )
  return Object.entries(requests ?? {}).flatMap(([verb, sent]) =>
    sent.map((request) => ({
      call: `subscription.${verb}`,
      request: { ...request, headers: request.body === undefined ? {} : { 'content-type': 'application/json' } },
    })),
  )
}
