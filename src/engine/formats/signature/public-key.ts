import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileTemplate } from '../../expressions/template.ts'
import { matchesPattern } from '../credential/field-pattern.ts'
import { renderSetting } from './secret.ts'
import { compileSource, readText } from './source.ts'
import { invalid, ok, type Result, type VerificationContext, type WebhookRequest } from './verification.ts'

/** Reads the public key of a request from a certificate that the sender serves. */
export type ReadCertificateKey = (
  request: WebhookRequest,
  scope: TemplateScope,
  context: VerificationContext,
) => Promise<Result<KeyObject>>

/**
 * The URL may come from the request itself and is not trusted. It has to be `https://{host}{path}` and nothing else: the
 * host of the sender, and a path that only the sender's own certificates have. Other paths of the host may answer with a
 * text that a third party wrote.
 */
export function compileCertificate(url: string, host: string, pathPattern: string): ReadCertificateKey {
  const source = compileSource(url)
  const pinned = compileTemplate(host)
  return async (request, scope, context) => {
    const address = readText(source, request, scope)
    if (address.kind === 'invalid') return address
    const expected = renderSetting(pinned, scope, 'the host of the certificate')
    if (expected.kind === 'invalid') return expected
    const checked = checkAddress(address.value, `https://${expected.value}`, pathPattern)
    if (checked.kind === 'invalid') return checked
    const document = await context.keys.read(checked.value)
    return document.kind === 'invalid' ? document : keyOf(document.value, context.now())
  }
}

/** The normalized URL, when it has the origin, a path that matches the whole pattern, and no other parts. */
function checkAddress(address: string, origin: string, pathPattern: string): Result<string> {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url?.origin !== origin || url.username !== '' || url.password !== '')
    return invalid(`the certificate is not on ${origin}`)
  const isOnPath = matchesPattern(pathPattern, url.pathname) && url.href === origin + url.pathname
  return isOnPath ? ok(url.href) : invalid('the address of the certificate does not match certificate_path')
}

/** A file of certificates and nothing else, at most eight: that of the sender, and those of its issuers. */
const CERTIFICATE_FILE =
  /^(?:-----BEGIN CERTIFICATE-----\r?\n[0-9A-Za-z+/=\r\n]+-----END CERTIFICATE-----(?:\s+|$)){1,8}$/

/** The key of the first certificate in a PEM file; further ones are its issuers. */
function keyOf(pem: string, now: Date): Result<KeyObject> {
  if (!CERTIFICATE_FILE.test(pem)) return invalid('the document is not a PEM certificate and nothing else')
  try {
    const { validFromDate, validToDate, publicKey } = new X509Certificate(pem)
    const isValid = validFromDate <= now && now <= validToDate
    return isValid ? ok(publicKey) : invalid('the certificate is not valid at this time')
  } catch {
    return invalid('the certificate is not readable')
  }
}

/** Smallest RSA key: weaker ones can be factored. */
const RSA_BITS_MIN = 2048
const ED25519_KEY_BYTES = 32

/**
 * A public key as senders publish it: PEM (line breaks may be written as `\n`), a JWK, base64 of the DER (SPKI), or the bare
 * 32 bytes of an Ed25519 key in hexadecimal or base64. `undefined` when it is none of these, or too weak.
 */
export function readPublicKey(text: string): KeyObject | undefined {
  try {
    const key = parseKey(text.trim())
    const bits = key.asymmetricKeyDetails?.modulusLength
    return bits !== undefined && bits < RSA_BITS_MIN ? undefined : key
  } catch {
    return undefined
  }
}

function parseKey(text: string): KeyObject {
  if (text.startsWith('-----BEGIN')) return createPublicKey(text.replaceAll('\\n', '\n'))
  if (text.startsWith('{')) return createPublicKey({ key: JSON.parse(text), format: 'jwk' })
  const bytes = Buffer.from(text, /^[0-9a-f]{64}$/i.test(text) ? 'hex' : 'base64')
  if (bytes.byteLength !== ED25519_KEY_BYTES) return createPublicKey({ key: bytes, format: 'der', type: 'spki' })
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }, format: 'jwk' })
}
