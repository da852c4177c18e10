import { constants, type KeyObject, type VerifyKeyObjectInput, verify } from 'node:crypto'
import { z } from 'zod'
import { compileTemplate } from '../../expressions/template.ts'
import { findPatternProblem, PATTERN_LENGTH_MAX } from '../credential/field-pattern.ts'
import { withSchema } from '../format.ts'
import { rawText, refineWith, templateText } from '../schema-types.ts'
import { verifyItems } from './items.ts'
import { compileCertificate, type ReadCertificateKey, readPublicKey } from './public-key.ts'
import { decodeExactly, renderSetting } from './secret.ts'
import type { SignatureFormat } from './signature.ts'
import { compileSigned, findTimestampProblem, signedKeys, stringType } from './signed-content.ts'
import { sourceText } from './source.ts'
import { invalid, ok, VALID } from './verification.ts'

interface Algorithm {
  readonly keyType: KeyObject['asymmetricKeyType']
  /** `null` where the algorithm hashes by itself. */
  readonly hash: string | null
  readonly options?: Omit<VerifyKeyObjectInput, 'key'>
}

const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }

/** The settings that name the public key. */
interface PublicKeySettings {
  readonly public_key?: string | undefined
  readonly certificate_url?: string | undefined
  readonly certificate_host?: string | undefined
  readonly certificate_path?: string | undefined
}

const ALGORITHMS = {
  /** Only where a sender knows nothing better (SNS, version 1). */
  'rsa-sha1': { keyType: 'rsa', hash: 'sha1' },
  'rsa-sha256': { keyType: 'rsa', hash: 'sha256' },
  'rsa-sha512': { keyType: 'rsa', hash: 'sha512' },
  'rsa-pss-sha256': { keyType: 'rsa', hash: 'sha256', options: PSS },
  /** The signature in DER. */
  'ecdsa-sha256': { keyType: 'ec', hash: 'sha256' },
  ed25519: { keyType: 'ed25519', hash: null },
} as const satisfies Record<string, Algorithm>

type AsymmetricAlgorithmName = keyof typeof ALGORITHMS

const config = z
  .strictObject({
    algorithm: z
      .enum(Object.keys(ALGORITHMS) as [AsymmetricAlgorithmName, ...AsymmetricAlgorithmName[]])
      .describe('Algorithm of the signature.'),
    public_key: templateText()
      .optional()
      .describe('PEM, base64 of the DER, a JWK, or the 32 bytes of an Ed25519 key in hexadecimal or base64.'),
    certificate_url: sourceText()
      .optional()
      .describe(
        'Where the address of the certificate is, for example `$header.x-cert-url`; only on `certificate_host`, with a path of `certificate_path`.',
      ),
    certificate_host: templateText()
      .optional()
      .describe('The only host that a certificate is taken from, always over HTTPS.'),
    certificate_path: rawText()
      .max(PATTERN_LENGTH_MAX, { abort: true })
      .superRefine(refineWith(findPatternProblem, 'signature.certificate_path'))
      .optional()
      .describe(
        'Regular expression (RE2) that the whole path of the address matches, for example `^/certs/[a-z0-9-]+$`; a query or a fragment is invalid. Must match only paths where only the sender can place a document.',
      ),
    string_type: stringType.default('base64'),
    ...signedKeys,
  })
  .superRefine(refineWith(findKeyProblem, 'signature.key'))
  .superRefine(refineWith(findTimestampProblem, 'signature.timestamp'))

/** `asymmetric`: RSA, ECDSA or Ed25519 with a public key, or a certificate from a pinned host. */
export const asymmetric: SignatureFormat = {
  format: 'asymmetric',
  summary: 'RSA, ECDSA or Ed25519 signature over the parts.',
  config,
  signed: withSchema(config, (keys) => keys),
  compile: withSchema(config, (keys) => {
    const readSigned = compileSigned(keys)
    const readKey = compileKey(keys)
    const algorithm: Algorithm = ALGORITHMS[keys.algorithm]
    return verifyItems(keys.items, async (request, scope, context) => {
      const signed = readSigned(request, scope, context.now())
      if (signed.kind === 'invalid') return signed
      const key = await readKey(request, scope, context)
      if (key.kind === 'invalid') return key
      if (key.value.asymmetricKeyType !== algorithm.keyType) return invalid(`the key is not one for ${keys.algorithm}`)
      const { content, signatures } = signed.value
      const isValidSignature = signatures
        .map((text) => decodeExactly(text, keys.string_type))
        .some((bytes) => bytes !== undefined && isSignature(algorithm, key.value, content, bytes))
      return isValidSignature ? VALID : invalid('the signature does not match')
    })
  }),
}

function compileKey({
  public_key,
  certificate_url,
  certificate_host,
  certificate_path,
}: PublicKeySettings): ReadCertificateKey {
  if (certificate_url !== undefined)
    return compileCertificate(certificate_url, certificate_host ?? '', certificate_path ?? '')
  const template = compileTemplate(public_key ?? '')
  return async (_delivery, scope) => {
    const text = renderSetting(template, scope, 'the public key')
    if (text.kind === 'invalid') return text
    const key = readPublicKey(text.value)
    return key === undefined ? invalid('the public key is not readable, or too weak') : ok(key)
  }
}

function isSignature(
  { hash, options }: Algorithm,
  key: KeyObject,
  content: Uint8Array,
  signature: Uint8Array,
): boolean {
  return verify(hash, content, { ...options, key }, signature)
}

function findKeyProblem({ public_key, certificate_url, ...pin }: PublicKeySettings): string | undefined {
  if ((public_key === undefined) === (certificate_url === undefined))
    return 'needs either public_key or certificate_url'
  const isPinned = [pin.certificate_host, pin.certificate_path].map((setting) => setting !== undefined)
  if (isPinned.some((isSet) => isSet !== (certificate_url !== undefined)))
    return 'needs certificate_url, certificate_host and certificate_path together'
  return undefined
}
