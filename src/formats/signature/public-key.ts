import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto'
import { compileTemplate, type TemplateScope } from '../../expressions/index.ts'
import { renderSetting } from './secret.ts'
import { type InboundDelivery, invalid, ok, type Result, type VerificationContext } from './signature.ts'
import { compileSource, readText } from './source.ts'

/** Reads the public key of a delivery from a certificate that the sender serves. */
export type ReadCertificateKey = (
  delivery: InboundDelivery,
  scope: TemplateScope,
  context: VerificationContext,
) => Promise<Result<KeyObject>>

/**
 * The URL may come from the delivery itself and is not trusted. The host is: it is pinned to the sender's own and reached over
 * HTTPS; a port or user information is invalid.
 */
export function compileCertificate(url: string, host: string): ReadCertificateKey {
  const source = compileSource(url)
  const pinned = compileTemplate(host)
  return async (delivery, scope, context) => {
    const address = readText(source, delivery, scope)
    if (address.kind === 'invalid') return address
    const expected = renderSetting(pinned, scope, 'the host of the certificate')
    if (expected.kind === 'invalid') return expected
    if (!isOnHost(address.value, expected.value)) return invalid(`the certificate is not on https://${expected.value}`)
    const document = await context.keys.read(address.value)
    return document.kind === 'invalid' ? document : keyOf(document.value, context.now())
  }
}

function isOnHost(address: string, host: string): boolean {
  const url = URL.canParse(address) ? new URL(address) : undefined
  return url?.origin === `https://${host}` && url.username === '' && url.password === ''
}

/** The key of the first certificate in a PEM file; further ones are its issuers. */
function keyOf(pem: string, now: Date): Result<KeyObject> {
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
