import { constants, createHmac, createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { argumentError } from './arguments.ts'

/**
 * A signed token in compact form (RFC 7515): header and claims as given, `alg` and `typ` set here.
 *
 * @param key the shared secret for HS algorithms, a private key in PEM otherwise
 */
export function signJwt(
  claims: object | undefined,
  key: string | undefined,
  algorithm = 'HS256',
  header: object = {},
): string | undefined {
  if (claims === undefined || key === undefined) return undefined
  const signer = SIGNERS.get(algorithm)
  if (!signer) throw argumentError(`"${algorithm.slice(0, 32)}" is not one of ${[...SIGNERS.keys()].join(', ')}`)
  const input = `${encode({ ...header, alg: algorithm, typ: 'JWT' })}.${encode(claims)}`
  return `${input}.${signer(input, key).toString('base64url')}`
}

type Signer = (input: string, key: string) => Buffer

const SIGNERS: ReadonlyMap<string, Signer> = new Map<string, Signer>([
  ['HS256', keyed('sha256')],
  ['HS384', keyed('sha384')],
  ['HS512', keyed('sha512')],
  ['RS256', rsa('sha256', constants.RSA_PKCS1_PADDING)],
  ['RS384', rsa('sha384', constants.RSA_PKCS1_PADDING)],
  ['RS512', rsa('sha512', constants.RSA_PKCS1_PADDING)],
  ['PS256', rsa('sha256', constants.RSA_PKCS1_PSS_PADDING)],
  ['ES256', ecdsa('sha256')],
  ['ES384', ecdsa('sha384')],
  ['EdDSA', (input, key) => sign(null, Buffer.from(input), privateKey(key))],
])

function keyed(digest: string): Signer {
  return (input, key) => createHmac(digest, key).update(input).digest()
}

function rsa(digest: string, padding: number): Signer {
  const saltLength = constants.RSA_PSS_SALTLEN_DIGEST
  return (input, key) => sign(digest, Buffer.from(input), { key: privateKey(key), padding, saltLength })
}

function ecdsa(digest: string): Signer {
  return (input, key) => sign(digest, Buffer.from(input), { key: privateKey(key), dsaEncoding: 'ieee-p1363' })
}

/** The library's own message may quote the key. */
function privateKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    throw argumentError('The key of $jwtSign is not a private key in PEM form')
  }
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}
