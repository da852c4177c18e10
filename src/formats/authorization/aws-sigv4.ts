import { createHash, createHmac } from 'node:crypto'
import { z } from 'zod'
import { compileTemplate, renderText, type TextTemplate } from '../../expressions/index.ts'
import { withSchema } from '../format.ts'
import { percentEncode } from '../query-string.ts'
import { secretText, templateText } from '../schema-types.ts'
import type { AuthorizationFormat, UnauthorizedRequest } from './authorization.ts'

const config = z.strictObject({
  access_key_id: templateText().describe('Identifies the key.'),
  secret_access_key: secretText().describe('Signs; never sent.'),
  session_token: secretText().optional().describe('Sent as `X-Amz-Security-Token`, for temporary credentials.'),
  region: templateText().describe('For example `eu-central-1`.'),
  service: templateText().describe('For example `s3` or `execute-api`.'),
})

interface AwsSigningKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
  readonly service: string
}

/** `aws_sigv4`: Signature Version 4 in the Authorization header. */
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
    return (request, scope, { now }) => {
      const render = (template: TextTemplate) => renderText(template, scope)
      const key: AwsSigningKey = {
        accessKeyId: render(accessKeyId),
        secretAccessKey: render(secretAccessKey),
        region: render(region),
        service: render(service),
      }
      const headers = signingHeaders(request, now(), sessionToken === undefined ? undefined : render(sessionToken))
      const { host: _implied, ...sent } = headers
      return { headers: { ...sent, authorization: authorizationHeader(request, headers, key) }, query: {} }
    }
  }),
}

/**
 * The headers that are signed: host (undici sends it), time, payload hash, session token. Of a body that is streamed only the
 * caller can know the hash.
 */
function signingHeaders(
  request: UnauthorizedRequest,
  now: Date,
  sessionToken: string | undefined,
): Record<string, string> {
  const headers: Record<string, string> = {
    host: new URL(request.url).host,
    'x-amz-content-sha256': request.headers['x-amz-content-sha256'] ?? sha256(request.body ?? ''),
    'x-amz-date': now.toISOString().replace(/[-:]|\.\d{3}/g, ''),
  }
  if (sessionToken !== undefined) headers['x-amz-security-token'] = sessionToken
  return headers
}

function authorizationHeader(
  request: UnauthorizedRequest,
  headers: Record<string, string>,
  key: AwsSigningKey,
): string {
  const timestamp = headers['x-amz-date'] ?? ''
  const day = timestamp.slice(0, 8)
  const credentialScope = `${day}/${key.region}/${key.service}/aws4_request`
  const signedNames = Object.keys(headers).sort()
  const canonical = canonicalRequest(request, headers, signedNames, key.service)
  const toSign = ['AWS4-HMAC-SHA256', timestamp, credentialScope, sha256(canonical)].join('\n')
  const signature = [day, key.region, key.service, 'aws4_request', toSign].reduce<string | Buffer>(
    (secret, text) => createHmac('sha256', secret).update(text).digest(),
    `AWS4${key.secretAccessKey}`,
  )
  const credential = `Credential=${key.accessKeyId}/${credentialScope}`
  const hex = Buffer.from(signature).toString('hex')
  return `AWS4-HMAC-SHA256 ${credential}, SignedHeaders=${signedNames.join(';')}, Signature=${hex}`
}

function canonicalRequest(
  request: UnauthorizedRequest,
  headers: Record<string, string>,
  names: string[],
  service: string,
): string {
  const url = new URL(request.url)
  const query = [...url.searchParams]
    .map(([name, value]) => `${percentEncode(name)}=${percentEncode(value)}`)
    .sort()
    .join('&')
  return [
    request.method,
    canonicalPath(url.pathname, service),
    query,
    ...names.map((name) => `${name}:${headers[name]?.trim().replace(/\s+/g, ' ')}`),
    '',
    names.join(';'),
    headers['x-amz-content-sha256'],
  ].join('\n')
}

/** Every service but S3 signs the path encoded a second time. */
function canonicalPath(pathname: string, service: string): string {
  if (service === 's3') return pathname
  return pathname.split('/').map(percentEncode).join('/')
}

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}
