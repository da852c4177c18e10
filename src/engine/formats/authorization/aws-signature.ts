import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto'
import { SignatureV4 } from '@smithy/signature-v4'
import type { UnauthorizedRequest } from './authorization.ts'

/** Who signs, and for which service. */
export interface AwsSigningKey {
  readonly accessKeyId: string
  /** Signs; never sent. */
  readonly secretAccessKey: string
  /** Sent as `X-Amz-Security-Token`, for temporary credentials. */
  readonly sessionToken?: string | undefined
  readonly region: string
  readonly service: string
}

/**
 * Signs a request with AWS Signature Version 4; returns the headers to send beside its own. A body that is not in the request
 * is named by its hash, in hexadecimal, in the header `x-amz-content-sha256`.
 */
export async function signAwsRequest(
  request: UnauthorizedRequest,
  { accessKeyId, secretAccessKey, sessionToken, region, service }: AwsSigningKey,
  now: Date,
): Promise<Readonly<Record<string, string>>> {
  const signer = new SignatureV4({
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) },
    region,
    service,
    sha256: Sha256,
    // Every service but S3 signs the path encoded a second time.
    uriEscapePath: service !== 's3',
  })
  const signed = await signer.sign(signableRequest(request), { signingDate: now })
  const { host: _sentByClient, ...headers } = signed.headers
  return headers
}

/** Only the host and the `x-amz-` headers that the signer adds are signed: proxies may change all others. */
function signableRequest({ method, url: text, headers, body }: UnauthorizedRequest) {
  const url = new URL(text)
  const query = new Map<string, string[]>()
  for (const [name, value] of url.searchParams) {
    const values = query.get(name)
    if (values === undefined) query.set(name, [value])
    else values.push(value)
  }
  const payloadHash = headers['x-amz-content-sha256']
  return {
    method,
    protocol: url.protocol,
    hostname: url.hostname,
    path: url.pathname,
    query: Object.fromEntries(query),
    headers: { host: url.host, ...(payloadHash === undefined ? {} : { 'x-amz-content-sha256': payloadHash }) },
    body,
  }
}

/** SHA-256, or HMAC-SHA-256 under a secret, as the signer wants it. */
class Sha256 {
  readonly #hash: Hash | Hmac

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret))
  }

  update(chunk: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(chunk))
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest()
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): string | Uint8Array {
  if (typeof data === 'string') return data
  return ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data)
}
