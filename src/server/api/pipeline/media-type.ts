import { Failure } from '../../../foundation/base/index.ts'

/** JSON under any of its names, such as `application/merge-patch+json`. */
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/

/** Longest part of a character set's name that is repeated to its sender. */
const CHARSET_LENGTH_MAX = 40

/** The media type of a content type without its parameters, in lower case. */
export function mediaType(contentType: string): string {
  return contentType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** Tells whether a body is JSON in UTF-8; one without a content type counts as such. */
export function isJsonType(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === 'application/json') return true
  return JSON_TYPE.test(mediaType(contentType)) && charsetProblem(contentType) === undefined
}

/** The failure for a body of another content type; `otherwise` is the message when its character set is not the reason. */
export function unsupportedMediaType(contentType: string | undefined, otherwise: string): Failure {
  const isJson = /\bjson$/.test(mediaType(contentType ?? ''))
  return new Failure('UNSUPPORTED_MEDIA_TYPE', (isJson ? charsetProblem(contentType ?? '') : undefined) ?? otherwise)
}

/** What is wrong with the character set that a content type names; JSON is UTF-8 (RFC 8259, 8.1). */
export function charsetProblem(contentType: string): string | undefined {
  const charset = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(contentType)?.[1]
  if (charset === undefined || /^utf-?8$/i.test(charset)) return undefined
  return `the character set ${charset.slice(0, CHARSET_LENGTH_MAX)} is not supported: send JSON in UTF-8`
}
