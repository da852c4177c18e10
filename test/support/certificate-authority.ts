import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'

/** A certificate authority (CA) for one test, which issues a certificate for whatever server name a client asks for. */
export interface CertificateAuthority {
  /** Its own certificate, PEM: what clients have to trust. */
  readonly certificate: string
  /** SHA-256 of the public key of all servers (SubjectPublicKeyInfo), base64: what Chromium may be told to accept. */
  readonly serverKeyHash: string
  /** A new certificate for that name, and the key of all servers, PEM. */
  keysOf(serverName: string): { readonly cert: string; readonly key: string }
  /** The key of all servers with a certificate for that name; made once per name. */
  contextOf(serverName: string): SecureContext
}

const NAMED_CURVE = 'P-256'
const AUTHORITY = 'Patchbay test authority'

/** Creates one with new keys, which nothing stores. X.509 v3 (RFC 5280), ECDSA with SHA-256. */
export function createCertificateAuthority(): CertificateAuthority {
  const own = generateKeyPairSync('ec', { namedCurve: NAMED_CURVE })
  const server = generateKeyPairSync('ec', { namedCurve: NAMED_CURVE })
  const key = server.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const keysOf = (serverName: string) => ({
    cert: issue(own.privateKey, server.publicKey, serverName, subjectAltName(serverName)),
    key,
  })
  const contexts = new Map<string, SecureContext>()
  return {
    certificate: issue(own.privateKey, own.publicKey, AUTHORITY, IS_AUTHORITY),
    serverKeyHash: createHash('sha256')
      .update(server.publicKey.export({ type: 'spki', format: 'der' }))
      .digest('base64'),
    keysOf,
    contextOf(serverName) {
      const known = contexts.get(serverName)
      if (known !== undefined) return known
      const context = createSecureContext(keysOf(serverName))
      contexts.set(serverName, context)
      return context
    },
  }
}

function issue(issuerKey: KeyObject, subjectKey: KeyObject, subject: string, extension: Buffer): string {
  const certificate = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    commonName(AUTHORITY),
    der(0x30, utcTime('200101000000Z'), utcTime('491231235959Z')),
    commonName(subject),
    subjectKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, extension)),
  )
  const signature = sign('sha256', certificate, issuerKey)
  const signed = der(0x30, certificate, ECDSA_WITH_SHA256, der(0x03, Buffer.from([0]), signature))
  const lines = signed.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

/** One value of DER: tag, length in its shortest form, as BoringSSL demands, content. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  return Buffer.concat([Buffer.from([tag, ...lengthOctets(length)]), content])
}

function lengthOctets(length: number): readonly number[] {
  if (length < 0x80) return [length]
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
}

function commonName(name: string): Buffer {
  const id = Buffer.from([0x55, 0x04, 0x03])
  return der(0x30, der(0x31, der(0x30, der(0x06, id), der(0x0c, Buffer.from(name)))))
}

function utcTime(text: string): Buffer {
  return der(0x17, Buffer.from(text))
}

function subjectAltName(name: string): Buffer {
  const names = der(0x30, der(0x82, Buffer.from(name)))
  return der(0x30, der(0x06, Buffer.from([0x55, 0x1d, 0x11])), der(0x04, names))
}

/** Basic constraints: critical, a CA. */
const IS_AUTHORITY = der(
  0x30,
  der(0x06, Buffer.from([0x55, 0x1d, 0x13])),
  der(0x01, Buffer.from([0xff])),
  der(0x04, der(0x30, der(0x01, Buffer.from([0xff])))),
)
const ECDSA_WITH_SHA256 = der(0x30, der(0x06, Buffer.from([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02])))
