import { hash, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { Failure } from '../../../foundation/base/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileTemplate, renderText, type TextTemplate } from '../../expressions/template.ts'
import { secretText } from '../schema-types.ts'
import { invalid, ok, type Result } from './verification.ts'

/** A secret shared with the sender. */
export const sharedSecret = secretText().describe('Shared with the sender; an empty one rejects every request.')

/** Encoding of a shared secret. */
export const secretEncoding = z.enum(['utf8', 'hex', 'base64']).default('utf8').describe('How the secret is written.')

/**
 * Compiles a secret; an empty one makes every request invalid.
 *
 * @param prefix optional prefix that is not part of the secret
 */
export function compileSecret(
  text: string,
  encoding: z.output<typeof secretEncoding>,
  prefix = '',
): (scope: TemplateScope) => Result<Uint8Array> {
  const template = compileTemplate(text)
  return (scope) => {
    const secret = renderSetting(template, scope, 'the secret')
    if (secret.kind === 'invalid') return secret
    const written = secret.value.startsWith(prefix) ? secret.value.slice(prefix.length) : secret.value
    const bytes = encoding === 'utf8' ? Buffer.from(written) : decodeExactly(written, encoding)
    if (bytes === undefined) return invalid(`the secret is not ${encoding}`)
    return bytes.byteLength === 0 ? invalid('the secret is empty') : ok(bytes)
  }
}

/**
 * The text of a setting that the verification needs; invalid when it is empty or has no value.
 *
 * @param name for the reason, for example `the secret`
 */
export function renderSetting(template: TextTemplate, scope: TemplateScope, name: string): Result<string> {
  try {
    const text = renderText(template, scope)
    return text === '' ? invalid(`${name} is empty`) : ok(text)
  } catch (error) {
    // Names the placeholder, never a value.
    if (error instanceof Failure) return invalid(`${name} is not known: ${error.publicMessage}`)
    throw error
  }
}

/** Encodings of bytes as text. */
export const BYTE_ENCODINGS = ['hex', 'base64', 'base64url'] as const

export type ByteEncoding = (typeof BYTE_ENCODINGS)[number]

/**
 * Constant-time comparison: its duration reveals neither where texts or bytes differ nor their lengths.
 *
 * Both sides are hashed first, so that the comparison always runs over 32 bytes.
 */
export function constantTimeEqual(left: string | Uint8Array, right: string | Uint8Array): boolean {
  return timingSafeEqual(hash('sha256', left, 'buffer'), hash('sha256', right, 'buffer'))
}

/** Canonical form of an encoded text: hexadecimal in lower case, base64url without padding, base64 with it. */
export function normaliseEncoded(text: string, encoding: ByteEncoding): string {
  switch (encoding) {
    case 'hex':
      return text.toLowerCase()
    case 'base64url':
      return text.replace(/={1,2}$/, '')
    case 'base64':
      return text
  }
}

/** Strict decoding: `undefined` unless the text is the encoding of some bytes. Node alone skips invalid characters. */
export function decodeExactly(text: string, encoding: ByteEncoding): Buffer | undefined {
  const bytes = Buffer.from(text, encoding)
  return normaliseEncoded(bytes.toString(encoding), encoding) === normaliseEncoded(text, encoding) ? bytes : undefined
}
