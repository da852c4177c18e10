import type { AuthorizationEffect } from '../formats/index.ts'
import { utf8 } from '../formats/index.ts'
import { type Redaction, SECRET_MASK } from '../vault/index.ts'
import { withEffect } from './authorise.ts'
import type { BuiltRequest } from './build.ts'
import type { SentRequest } from './request-preview.ts'

/** A request for people's eyes: secrets in it masked, and everything that authorization puts on it. */
export function maskedRequest(built: BuiltRequest, effect: AuthorizationEffect, redaction: Redaction): SentRequest {
  const { body } = built
  const masked: BuiltRequest = {
    method: built.method,
    url: redaction.text(built.url),
    headers: mapValues(built.headers, (value) => redaction.text(value)),
    body: body === undefined ? undefined : redaction.text(typeof body === 'string' ? body : utf8(body)),
  }
  const { url, headers } = withEffect(masked, {
    headers: mapValues(effect.headers, (value, name) => schemeOf(name, value, redaction) + SECRET_MASK),
    query: mapValues(effect.query, () => SECRET_MASK),
  })
  return { method: masked.method, url, headers, body: masked.body?.toString() }
}

/** `Bearer ` and the like, which is no secret unless a credential says so. */
function schemeOf(name: string, value: string, redaction: Redaction): string {
  const [scheme = ''] = name === 'authorization' ? (/^[a-z][\w-]{0,31} (?=.)/i.exec(value) ?? []) : []
  return redaction.text(value).startsWith(scheme) ? scheme : ''
}

function mapValues(
  values: Readonly<Record<string, string>>,
  change: (value: string, name: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value, name)]))
}
