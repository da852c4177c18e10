import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto'
import { SignatureV4 } from '@smithy/signature-v4'
import { z } from 'zod'
import { compileTemplate, renderText } from '../../expressions/index.ts'
import { withSchema } from '../format.ts'
import { secretText, templateText } from '../schema-types.ts'
import type { AuthorizationFormat, UnauthorizedRequest } from './authorization.ts'

const config = z.strictObject({
  access_key_id: templateText().describe('Identifies the key.'),
  secret_access_key: secretText().describe('Signs; never sent.'),
  session_token: secretText().optional().describe('Sent as `X-Amz-Security-Token`, for temporary credentials.'),
  region: templateText().describe('For example `eu-central-1`.'),
  service: templateText().describe('For example `s3` or `execute-api`.'),
})

/** `aws_sigv4`: Signature Version 4 in the Authorization header, computed by the SDK's own signer. */
export const awsSigv4: AuthorizationFormat = {
  format: 'aws_sigv4',
  summary:
    'Signs the request with AWS Signature Version 4; the caller of a streamed body names its hash, or `UNSIGNED-PAYLOAD`, in `x-amz-content-sha256`.',
  config,
  compile: withSchema(config, (parsed) => {
    const accessKeyId = compileTemplate(parsed.access_key_id)
    const secretAccessKey = compileTemplate(parsed.secret_access_key)
    const region = compileTemplate(parsed.region)
    const service = compileTemplate(parsed.service)
    const sessionToken = parsed.session_token === undefined ? undefined : compileTemplate(parsed.session_token)
    return async (request, scope, { now }) => {
      const credentials = {
        accessKeyId: renderText(accessKeyId, scope),
        secretAccessKey: renderText(secretAccessKey, scope),
        ...(sessionToken === undefined ? {} : { sessionToken: renderText(sessionToken, scope) }),
      }
      const serviceName = renderText(service, scope)
      const signer = new SignatureV4({
        credentials,
        region: renderText(region, scope),
        service: serviceName,
        sha256: Sha256,
        // Every service but S3 signs the path encoded a second time.
        uriEscapePath: serviceName !== 's3',
      })
      const signed = await signer.sign(signableRequest(request), { signingDate: now() })
      const { host: _sentByClient, ...headers } = signed.headers
      return { headers, query: {} }
    }
  }),
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
