import { LRUCache } from 'lru-cache'
import { Failure } from '../../base/index.ts'
import { invalid, ok, type Result } from './signature.ts'

/**
 * Public keys of senders by address: key sets and certificates, kept for a while.
 *
 * `refused`: the address has no such document. Thrown: what the fetch throws, or Failure UPSTREAM_UNREACHABLE, when the keys
 * cannot be had now.
 */
export interface KeySource {
  read(url: string): Promise<Result<string>>
  /** For a key that the known document does not hold: a newer document, but at most one fetch a minute. */
  reread(url: string): Promise<Result<string>>
}

export interface KeySourceDeps {
  /** Fetches through the guarded client, with a deadline and a cap on the size. */
  readonly fetchKey: (url: string) => Promise<{ readonly status: number; readonly body: Uint8Array }>
  readonly now: () => Date
}

/** Documents remembered; the least recently used one is forgotten. */
const DOCUMENTS_MAX = 256
const DOCUMENT_BYTES_MAX = 256 * 1024
/** How long a document counts: a withdrawn key is accepted no longer than this. */
const FRESH_MS = 10 * 60_000
/** Between two fetches of one address, also of one that failed. */
const PAUSE_MS = 60_000
/** Deliveries name addresses of certificates; a flood of them must not become a flood of requests to the sender. */
const FETCHES_PER_HOST_AND_MINUTE_MAX = 30
const HOSTS_MAX = 256

interface Entry {
  readonly fetchedMs: number
  readonly document: Promise<Result<string>>
  hasFailed: boolean
}

/** Opens an empty source. Concurrent readers of one address share one fetch. */
export function createKeySource({ fetchKey, now }: KeySourceDeps): KeySource {
  const entries = new LRUCache<string, Entry>({ max: DOCUMENTS_MAX })
  const takeTurn = createFetchLimiter(now)

  function load(url: string, freshMs: number): Promise<Result<string>> {
    const known = entries.get(url)
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : now().getTime() - known.fetchedMs
    // A negative age is a clock that was set back: the document would be kept until it has caught up.
    if (known !== undefined && ageMs >= 0 && ageMs < (known.hasFailed ? PAUSE_MS : freshMs)) return known.document
    const entry: Entry = { fetchedMs: now().getTime(), document: fetchDocument(url), hasFailed: false }
    entries.set(url, entry)
    entry.document.then(
      ({ kind }) => {
        entry.hasFailed = kind === 'refused'
      },
      () => {
        entry.hasFailed = true
      },
    )
    return entry.document
  }

  async function fetchDocument(url: string): Promise<Result<string>> {
    const { host } = new URL(url)
    takeTurn(host)
    return documentOf(host, await fetchKey(url))
  }

  return { read: (url) => load(url, FRESH_MS), reread: (url) => load(url, PAUSE_MS) }
}

function documentOf(host: string, { status, body }: { status: number; body: Uint8Array }): Result<string> {
  if (status >= 500 || status === 429)
    throw new Failure('UPSTREAM_UNREACHABLE', `${host} answered ${status} when it was asked for its public keys`)
  if (status !== 200) return invalid(`${host} answered ${status} when it was asked for its public keys`)
  if (body.byteLength > DOCUMENT_BYTES_MAX) return invalid(`the public keys of ${host} are too long`)
  return ok(Buffer.from(body).toString())
}

/** Counts fetches per host and minute. */
function createFetchLimiter(now: () => Date): (host: string) => void {
  const turns = new LRUCache<string, { readonly minute: number; readonly count: number }>({ max: HOSTS_MAX })
  return (host) => {
    const minute = Math.floor(now().getTime() / 60_000)
    const before = turns.get(host)
    const count = before?.minute === minute ? before.count + 1 : 1
    if (count > FETCHES_PER_HOST_AND_MINUTE_MAX)
      throw new Failure('UPSTREAM_UNREACHABLE', `too many public keys of ${host} are asked for`)
    turns.set(host, { minute, count })
  }
}
