import { LRUCache } from 'lru-cache'
import { Failure } from '../../base/index.ts'
import { invalid, ok, type Result } from './signature.ts'

/**
 * Cache of the public keys of senders by URL: key sets and certificates.
 *
 * `invalid`: the URL has no such document. Throws the errors of the fetch, or Failure UPSTREAM_UNREACHABLE, while the keys
 * cannot be fetched.
 */
export interface KeySource {
  read(url: string): Promise<Result<string>>
  /** For a key that is not in the cached document: a newer document, with at most one fetch a minute. */
  reread(url: string): Promise<Result<string>>
}

export interface KeySourceDeps {
  /** Fetches through the guarded client, with a deadline and a cap on the size. */
  readonly fetchKey: (url: string) => Promise<{ readonly status: number; readonly body: Uint8Array }>
  readonly now: () => Date
}

/** Most cached documents (LRU). */
const DOCUMENTS_MAX = 256
const DOCUMENT_BYTES_MAX = 256 * 1024
/** Cache TTL: a withdrawn key is accepted no longer than this. */
const FRESH_MS = 10 * 60_000
/** Least time between two fetches of one URL, also after a failure. */
const PAUSE_MS = 60_000
/** Rate limit of fetches: deliveries name the URLs of certificates, and must not cause a flood of requests. */
const FETCHES_PER_HOST_AND_MINUTE_MAX = 30
const HOSTS_MAX = 256

interface CachedDocument {
  readonly fetchedMs: number
  readonly document: Promise<Result<string>>
  hasFailed: boolean
}

/** Creates an empty cache. Concurrent readers of one URL share one fetch. */
export function createKeySource({ fetchKey, now }: KeySourceDeps): KeySource {
  const entries = new LRUCache<string, CachedDocument>({ max: DOCUMENTS_MAX })
  const takeTurn = createFetchLimiter(now)

  function load(url: string, freshMs: number): Promise<Result<string>> {
    const known = entries.get(url)
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : now().getTime() - known.fetchedMs
    // A negative age means that the clock was set back: the entry would not expire until the clock has caught up.
    if (known !== undefined && ageMs >= 0 && ageMs < (known.hasFailed ? PAUSE_MS : freshMs)) return known.document
    const entry: CachedDocument = { fetchedMs: now().getTime(), document: fetchDocument(url), hasFailed: false }
    entries.set(url, entry)
    entry.document.then(
      ({ kind }) => {
        entry.hasFailed = kind === 'invalid'
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

/** Fixed-window rate limit per host and minute. */
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
