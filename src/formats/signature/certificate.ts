import { type KeyObject, X509Certificate } from 'node:crypto'
import { compileTemplate, type TemplateScope } from '../../expression/index.ts'
import { renderSetting } from './secret.ts'
import type { InboundDelivery, VerificationContext } from './signature.ts'
import { compileSource, readText } from './source.ts'
import { invalid, ok, type Result } from './verdict.ts'

/** Finds the public key of a delivery in a certificate that the sender serves. */
export type ReadCertificateKey = (
  delivery: InboundDelivery,
  scope: TemplateScope,
  tools: VerificationContext,
) => Promise<Result<KeyObject>>

/**
 * The address may come out of the delivery itself, so it proves nothing; that the host is the sender's own, reached over
 * HTTPS, does. Hence the host is pinned, port and user information are not accepted.
 */
export function compileCertificate(url: string, host: string): ReadCertificateKey {
  const source = compileSource(url)
  const pinned = compileTemplate(host)
  return async (delivery, scope, tools) => {
    const address = readText(source, delivery, scope)
    if (address.kind === 'refused') return address
    const expected = renderSetting(pinned, scope, 'the host of the certificate')
    if (expected.kind === 'refused') return expected
    if (!isOnHost(address.value, expected.value)) return invalid(`the certificate is not on https://${expected.value}`)
    const document = await tools.keys.read(address.value)
    return document.kind === 'refused' ? document : keyOf(document.value, tools.now())
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
