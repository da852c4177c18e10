import { Failure } from '../../../foundation/base/index.ts'
import { decodedForms } from '../../expressions/url-template.ts'

/** What a definition allows a next link to lead to, besides origin and path of the request. */
interface AllowedLinks {
  /** Any URL of an origin; one that is none allows nothing. */
  readonly origins: readonly string[]
  /** `*` stands for any characters. */
  readonly paths: readonly string[]
}

/**
 * Rejects a next link that leaves origin or path of the request, unless the definition allows it, before a credential is sent
 * to it: a list reads its own pages and nothing else of the account.
 *
 * @throws Failure PAGINATION_ORIGIN
 */
export function assertAllowedLink(link: string, requestUrl: string, { origins, paths }: AllowedLinks): void {
  const url = URL.parse(link)
  const allowed = [requestUrl, ...origins].map((text) => URL.parse(text)?.origin)
  if (url === null || url.username !== '' || url.password !== '' || !allowed.includes(url.origin))
    throw linkNotAllowed(
      url,
      `is on ${url?.origin ?? 'no valid origin'}, which is not the origin of the request; list it in allowed_origins if it is meant`,
    )
  const path = comparablePath(url)
  const own = URL.parse(requestUrl)
  const isOwn = path !== undefined && own !== null && path === comparablePath(own)
  if (isOwn || (path !== undefined && paths.some((pattern) => matchesPath(pattern, path)))) return
  throw linkNotAllowed(
    url,
    `has the path ${url.pathname.slice(0, 200)}, which is not that of the request; list it in allowed_paths if it is meant`,
  )
}

function linkNotAllowed(url: URL | null, problem: string): Failure {
  return new Failure('PAGINATION_ORIGIN', `the next page ${problem}`, { metadata: { origin: url?.origin ?? '' } })
}

/** A path without encoding and closing slash; `undefined` when a third party that decodes it would find another one in it. */
function comparablePath({ pathname }: URL): string | undefined {
  const [once = pathname, ...more] = decodedForms(pathname).slice(1)
  if ([once, ...more].some((form) => /(?:^|[/\\])\.\.?(?=[/\\]|$)/.test(form))) return undefined
  return once.replace(/\/+$/, '')
}

/** Whether a path has the parts of the pattern in order, the first at its start and the last at its end. Linear. */
function matchesPath(pattern: string, path: string): boolean {
  const [start = '', ...parts] = pattern.split('*')
  const end = parts.pop()
  if (end === undefined) return path === start.replace(/\/+$/, '')
  if (!path.startsWith(start) || !path.endsWith(end)) return false
  let position = start.length
  for (const part of parts) {
    const found = path.indexOf(part, position)
    if (found === -1) return false
    position = found + part.length
  }
  return position <= path.length - end.length
}
