import { LRUCache } from 'lru-cache'
import { Failure } from '../../../foundation/base/index.ts'
import { invalid, type KeySource, ok, type Result } from './verification.ts'

export interface KeySourceDeps {
  /** Fetches through the guarded client, with a deadline and a cap on the size. */
  readonly fetchKey: (url: string) => Promise<{ readonly status: number; readonly body: Uint8Array }>
  readonly now: () => Date
}

/** Most cached documents, and most URLs without one (LRU each): URLs that answer nothing evict no document. */
const DOCUMENTS_MAX = 256
const DOCUMENT_BYTES_MAX = 256 * 1024
/** Cache TTL: a withdrawn key is accepted no longer than this, unless fetches are at their limit. */
const FRESH_MS = 10 * 60_000
/** As long as a document is used while fetches are at their limit. */
const STALE_MS = 24 * 3_600_000
/** Least time between two fetches of one URL, also after a failure. */
const PAUSE_MS = 60_000
/** Rate limits of fetches: requests name the URLs of certificates, and must not cause a flood of requests. */
const FETCHES_PER_OWNER_AND_MINUTE_MAX = 30
/** Of all owners. */
const FETCHES_PER_HOST_AND_MINUTE_MAX = 300
const COUNTERS_MAX = 4_096

interface CachedDocument {
  readonly fetchedMs: number
  readonly document: Promise<Result<string>>
  hasFailed: boolean
}

/** Creates an empty cache. Concurrent readers of one URL share one fetch. */
export function createKeySource({ fetchKey, now }: KeySourceDeps): KeySource {
  const documents = new LRUCache<string, CachedDocument>({ max: DOCUMENTS_MAX })
  /** Fetches under way, and those that failed. */
  const attempts = new LRUCache<string, CachedDocument>({ max: DOCUMENTS_MAX })
  const takeTurn = createFetchLimiter(now)

  function load(owner: string, url: string, freshMs: number): Promise<Result<string>> {
    const known = attempts.get(url) ?? documents.get(url)
    if (known !== undefined && isYounger(known, known.hasFailed ? PAUSE_MS : freshMs)) return known.document
    const { host } = new URL(url)
    if (takeTurn(owner, host)) return fetchDocument(url, host).document
    const stale = documents.get(url)
    if (stale !== undefined && isYounger(stale, STALE_MS)) return stale.document
    return Promise.reject(new Failure('UPSTREAM_UNREACHABLE', `too many public keys of ${host} are asked for`))
  }

  /** A negative age means that the clock was set back: the entry would not expire until the clock has caught up. */
  function isYounger({ fetchedMs }: CachedDocument, ms: number): boolean {
    const ageMs = now().getTime() - fetchedMs
    return ageMs >= 0 && ageMs < ms
  }

  function fetchDocument(url: string, host: string): CachedDocument {
    const document = fetchKey(url).then((answer) => documentOf(host, answer))
    const entry: CachedDocument = { fetchedMs: now().getTime(), document, hasFailed: false }
    attempts.set(url, entry)
    document.then(
      ({ kind }) => {
        entry.hasFailed = kind === 'invalid'
        if (entry.hasFailed) return documents.delete(url)
        if (attempts.peek(url) === entry) attempts.delete(url)
        return documents.set(url, entry)
      },
      () => {
        entry.hasFailed = true
      },
    )
    return entry
  }

  const ofOwner = (owner: string): KeySource => ({
    read: (url) => load(owner, url, FRESH_MS),
    reread: (url) => load(owner, url, PAUSE_MS),
    ofOwner,
  })
  return ofOwner('')
}

function documentOf(host: string, { status, body }: { status: number; body: Uint8Array }): Result<string> {
  if (status >= 500 || status === 429)
    throw new Failure('UPSTREAM_UNREACHABLE', `${host} answered ${status} when it was asked for its public keys`)
  if (status !== 200) return invalid(`${host} answered ${status} when it was asked for its public keys`)
  if (body.byteLength > DOCUMENT_BYTES_MAX) return invalid(`the public keys of ${host} are too long`)
  return ok(Buffer.from(body).toString())
}

/** Fixed-window rate limits per host and minute: of each owner, and of all. */
function createFetchLimiter(now: () => Date): (owner: string, host: string) => boolean {
  const counters = () =>
    new LRUCache<string, { readonly minute: number; readonly count: number }>({ max: COUNTERS_MAX })
  const [ofOwners, ofHosts] = [counters(), counters()]
  return (owner, host) => {
    const minute = Math.floor(now().getTime() / 60_000)
    const next = (counts: ReturnType<typeof counters>, key: string) => {
      const before = counts.get(key)
      return { minute, count: before?.minute === minute ? before.count + 1 : 1 }
    }
    const key = `${owner} ${host}`
    const [own, all] = [next(ofOwners, key), next(ofHosts, host)]
    if (own.count > FETCHES_PER_OWNER_AND_MINUTE_MAX || all.count > FETCHES_PER_HOST_AND_MINUTE_MAX) return false
    ofOwners.set(key, own)
    ofHosts.set(host, all)
    return true
  }
}
