import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll } from 'vitest'
import { type CertificateAuthority, createCertificateAuthority } from './certificate-authority.ts'

/** Creates a certificate authority that TLS clients of this file trust, beside those they trust anyway. */
export function trustedAuthority(): CertificateAuthority {
  const authority = createCertificateAuthority()
  const usual = getCACertificates('default')
  setDefaultCACertificates([...usual, authority.certificate])
  afterAll(() => setDefaultCACertificates(usual))
  return authority
}
