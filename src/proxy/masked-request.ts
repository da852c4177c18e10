import type { AuthorizationEffect } from '../formats/index.ts'
import { decodeUtf8 } from '../formats/index.ts'
import { type Redactor, SECRET_MASK } from '../vault/index.ts'
import { applyAuthorization } from './authorise.ts'
import type { BuiltRequest } from './build.ts'
import type { SentRequest } from './request-preview.ts'

/** A request for people's eyes: secrets in it masked, and everything that authorization puts on it. */
export function maskRequest(built: BuiltRequest, effect: AuthorizationEffect, redaction: Redactor): SentRequest {
  const { body } = built
  const masked: BuiltRequest = {
    method: built.method,
    url: redaction.redactText(built.url),
    headers: mapValues(built.headers, (value) => redaction.redactText(value)),
    body: body === undefined ? undefined : redaction.redactText(typeof body === 'string' ? body : decodeUtf8(body)),
  }
  const { url, headers } = applyAuthorization(masked, {
    headers: mapValues(effect.headers, (value, name) => visibleScheme(name, value, redaction) + SECRET_MASK),
    query: mapValues(effect.query, () => SECRET_MASK),
  })
  return { method: masked.method, url, headers, body: masked.body?.toString() }
}

/** `Bearer ` and the like, which is no secret unless a credential says so. */
function visibleScheme(name: string, value: string, redaction: Redactor): string {
  const [scheme = ''] = name === 'authorization' ? (/^[a-z][\w-]{0,31} (?=.)/i.exec(value) ?? []) : []
  return redaction.redactText(value).startsWith(scheme) ? scheme : ''
}

function mapValues(
  values: Readonly<Record<string, string>>,
  change: (value: string, name: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value, name)]))
}
