import { createHash } from 'node:crypto'
import { type AwsSigningKey, signAwsRequest } from '../../engine/formats/index.ts'
import {
  type BackoffPolicy,
  backoffMs,
  type Clock,
  Failure,
  isTransient,
  type Random,
} from '../../foundation/base/index.ts'
import { type EgressResponse, type HttpClient, isTransientStatus } from '../../foundation/egress/index.ts'
import { type ObjectName, type ObjectStore, objectPath } from './object-store.ts'

/** Where the bucket is and how to sign for it. */
export interface S3Bucket extends Pick<AwsSigningKey, 'accessKeyId' | 'secretAccessKey' | 'region'> {
  /** Base URL of the service, e.g. `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string
  readonly bucket: string
  /** Whether the bucket is the first segment of the path; else it is the first label of the host. */
  readonly isPathStyle: boolean
  /** Put before the names of objects as it is, e.g. `patchbay/`. */
  readonly prefix: string
}

/** What the store sends requests with. */
export interface S3Dependencies {
  readonly http: Pick<HttpClient, 'send'>
  readonly clock: Pick<Clock, 'now' | 'sleep'>
  readonly random: Random
}

/** Three attempts end before a transaction that waits for them is closed as idle. */
const TIMEOUT_MS = 4_000
const ATTEMPTS_MAX = 3
const RETRY_BACKOFF: BackoffPolicy = { baseMs: 100, factor: 3, maxMs: 1_000, jitterFloor: 0.5 }
const ERROR_BYTES_MAX = 16 * 1024
/** Characters that a path may contain as they are (RFC 3986, unreserved). */
const RESERVED = /[!'()*]/g

/**
 * Objects in a bucket, over the three requests of S3's REST API that this takes. Bodies are part of the signature; each
 * request is made up to three times when the service is unreachable or overloaded.
 *
 * Source: Amazon S3 API Reference, PutObject, GetObject, DeleteObject, Error Responses; 404 says `NoSuchKey` for an object,
 * and `NoSuchBucket` for a wrong configuration.
 *
 * @param bytesMax limit of an object that is read
 */
export function createS3Store(deps: S3Dependencies, bucket: S3Bucket, bytesMax: number): ObjectStore {
  const urlOf = createUrls(bucket)
  const key = { ...bucket, service: 's3' }
  const maxResponseBytes = Math.max(bytesMax, ERROR_BYTES_MAX)

  async function sendOnce(method: string, url: string, body: Uint8Array | undefined): Promise<EgressResponse> {
    const unsigned = {
      'x-amz-content-sha256': createHash('sha256')
        .update(body ?? '')
        .digest('hex'),
    }
    const signed = await signAwsRequest({ method, url, headers: unsigned, body }, key, deps.clock.now())
    const request = { method, url, headers: { ...unsigned, ...signed }, timeoutMs: TIMEOUT_MS, maxResponseBytes }
    return await deps.http.send(body === undefined ? request : { ...request, body })
  }

  async function request(
    method: 'PUT' | 'GET' | 'DELETE',
    name: ObjectName,
    body?: Uint8Array,
  ): Promise<EgressResponse> {
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await sendOnce(method, urlOf(name), body)
        if (attempt === ATTEMPTS_MAX || !isTransientStatus(response.status)) return response
      } catch (error) {
        if (attempt === ATTEMPTS_MAX || !(error instanceof Failure) || !isTransient(error)) throw unavailable(error)
      }
      await deps.clock.sleep(backoffMs(RETRY_BACKOFF, attempt, deps.random))
    }
  }

  return {
    async put(name, bytes) {
      assertSuccess(await request('PUT', name, bytes))
    },
    async get(name) {
      const response = await request('GET', name)
      if (response.status === 404 && errorCodeOf(response) === 'NoSuchKey') return undefined
      return assertSuccess(response).body
    },
    async delete(name) {
      const response = await request('DELETE', name)
      if (response.status !== 404 || errorCodeOf(response) !== 'NoSuchKey') assertSuccess(response)
    },
  }
}

/** The URL of an object in path style (`/bucket/key`) or virtual-hosted style (`bucket.host/key`). */
function createUrls({ endpoint, bucket, isPathStyle, prefix }: S3Bucket): (name: ObjectName) => string {
  const base = new URL(endpoint)
  if (!isPathStyle) base.host = `${bucket}.${base.host}`
  const folder = base.pathname.replace(/\/$/, '')
  return (name) => {
    const segments = [...(isPathStyle ? [bucket] : []), ...`${prefix}${objectPath(name)}`.split('/')]
    return `${base.origin}${folder}/${segments.map(encodeSegment).join('/')}`
  }
}

function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replace(RESERVED, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

function assertSuccess(response: EgressResponse): EgressResponse {
  if (response.status >= 200 && response.status < 300) return response
  const code = errorCodeOf(response)
  throw new Failure(
    'OBJECT_STORE_UNAVAILABLE',
    `the object store answered with status ${response.status}${code && ` ${code}`}`,
  )
}

/** The `<Code>` of an error response, a word such as `AccessDenied`; empty when there is none. */
function errorCodeOf({ body }: EgressResponse): string {
  const text = Buffer.from(body.subarray(0, ERROR_BYTES_MAX)).toString('utf8')
  return /<Code>(\w{1,64})<\/Code>/.exec(text)?.[1] ?? ''
}

function unavailable(cause: unknown): unknown {
  if (!(cause instanceof Failure)) return cause
  return new Failure('OBJECT_STORE_UNAVAILABLE', `the object store cannot be reached: ${cause.publicMessage}`, {
    cause,
  })
}
