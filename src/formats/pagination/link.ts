import { Failure } from '../../base/index.ts'

/** One `<target>; param=value; …` of a Link header; quoted values may hold commas and semicolons. */
const LINK = /<([^>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+\s*(?:=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)/g
const REL = /;\s*rel\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*))/i

/**
 * The target of the link with that relation (RFC 8288), absolute; relative targets are resolved against the page's URL.
 *
 * The first `rel` parameter of a link counts, it may hold several relations, and their case does not matter.
 */
export function findLink(header: string | undefined, rel: string, pageUrl: string): string | undefined {
  if (header === undefined) return undefined
  for (const [, target = '', parameters = ''] of header.matchAll(LINK)) {
    const match = REL.exec(parameters)
    const relations = (match?.[1] ?? match?.[2] ?? '').toLowerCase().split(/\s+/)
    if (relations.includes(rel.toLowerCase())) return absoluteLink(target, pageUrl)
  }
  return undefined
}

/** The link as given when it is absolute, else resolved against the page it came from. @throws Failure UPSTREAM_INVALID_RESPONSE */
export function absoluteLink(link: string, pageUrl: string): string {
  if (/^https?:\/\//i.test(link) && URL.canParse(link)) return link
  if (!URL.canParse(link, pageUrl))
    throw new Failure('UPSTREAM_INVALID_RESPONSE', 'the upstream gave a next link that is not a URL')
  return new URL(link, pageUrl).href
}

/**
 * Refuses a next link that leaves the origin of the request and the allowed ones, before any credential is put on it.
 *
 * @throws Failure PAGINATION_ORIGIN
 */
export function guardOrigin(link: string, requestUrl: string, allowedOrigins: readonly string[]): void {
  const url = URL.canParse(link) ? new URL(link) : undefined
  const origins = [requestUrl, ...allowedOrigins]
    .filter((text) => URL.canParse(text))
    .map((text) => new URL(text).origin)
  if (url !== undefined && url.username === '' && url.password === '' && origins.includes(url.origin)) return
  throw new Failure(
    'PAGINATION_ORIGIN',
    `the next page is on ${url?.origin ?? 'no valid origin'}, which is not the origin of the request; list it in allowed_origins if it is meant`,
    {
      metadata: { origin: url?.origin ?? '' },
    },
  )
}
